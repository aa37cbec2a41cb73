NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  if (x > 1) float b = 2;
  return 1;
}
EdgeValue {
  return value;
}
