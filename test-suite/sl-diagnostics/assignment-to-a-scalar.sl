NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  a = 1;
  x += 2;
  get(0, 0) = 3;
  return a;
}
EdgeValue {
  return value;
}
