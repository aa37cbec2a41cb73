NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return 1f + 2.0q + 3x;
}
EdgeValue {
  return value;
}
