NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return read(x - 1);
}
EdgeValue {
  return read(x);
}
