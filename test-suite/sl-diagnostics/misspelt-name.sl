NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float sum = 1;
  return smu + iterations;
}
EdgeValue {
  return value;
}
