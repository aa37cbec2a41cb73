NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  for (int k = 0; k < 3; k++)
    if (x == k) return 1;
  return 0;
}
EdgeValue {
  return value;
}
