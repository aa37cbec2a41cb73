NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  const float b = 1;
  b = 2;
  const float c;
  return b;
}
EdgeValue {
  return value;
}
