NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return sqr(get(0, 0)) + printf(1);
}
EdgeValue {
  return value;
}
