NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float x = 1, get = 2;
  return x;
}
EdgeValue {
  int value = 3;
  return value;
}
