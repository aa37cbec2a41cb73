NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float w[3] = {1, 2, 3, 4};
  float v[n];
  float u[0];
  float t[2][2];
  return w[3] + w[x] + w + a[0];
}
EdgeValue {
  return value;
}
