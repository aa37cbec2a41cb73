NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float b;
  if (x > 0) b = 1;
  return b;
}
EdgeValue {
  return value;
}
