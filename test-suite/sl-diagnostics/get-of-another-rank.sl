NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(1, 0, 0);
}
EdgeValue {
  return value;
}
