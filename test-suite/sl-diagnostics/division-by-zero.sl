NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  int k = 3;
  return n / 0 + n % (k - 3);
}
EdgeValue {
  return value;
}
