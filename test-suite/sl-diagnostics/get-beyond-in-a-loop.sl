NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float s = 0;
  for (int i = -1; i <= 2; i++)
    s += get(i, 0);
  return s;
}
EdgeValue {
  return value;
}
