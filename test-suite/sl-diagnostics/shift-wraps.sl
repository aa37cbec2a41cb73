NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return n >> 4294967297;
}
EdgeValue {
  return value;
}
