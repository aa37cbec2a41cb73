NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float b;
  float c = b = 1;
  if (c = 2) c++;
  return c++;
}
EdgeValue {
  return value;
}
