NumDimensions 2
StencilSizes (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
