NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return x > 1 ? 2;
}
EdgeValue {
  return value;
}
