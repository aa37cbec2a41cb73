NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return 99999999999999999999 + 1e400 + 1e39f + 1e-60f;
}
EdgeValue {
  return value;
}
