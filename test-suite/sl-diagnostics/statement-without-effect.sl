NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  get(0, 0) + 1;
  return 0;
}
EdgeValue {
  return value;
}
