NumDimensions 2
StencilSize (1, 40000)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
