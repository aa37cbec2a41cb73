NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float b = get(0, 0);
  return (b & 1) + (b % 2) + (~b) + (b << 1);
}
EdgeValue {
  return value;
}
