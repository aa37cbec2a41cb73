NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  int k = x % 2;
  return get(k, 0) + get(0.5, n);
}
EdgeValue {
  return value;
}
