NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float w[3] = 1;
  float b = {1};
  float c[];
  return b;
}
EdgeValue {
  return value;
}
