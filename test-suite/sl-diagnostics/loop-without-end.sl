NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float s = 0;
  for (int k = 0; k < 3; s += 1) s += 1;
  for (;;) s += 1;
  return s;
}
EdgeValue {
  return value;
}
