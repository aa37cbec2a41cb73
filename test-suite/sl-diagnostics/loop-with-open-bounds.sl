NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float s = 0;
  for (int k = 0; k < n; k++) s += 1;
  return s;
}
EdgeValue {
  return value;
}
