NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float b = (1, 2);
  return b, 3;
}
EdgeValue {
  return value;
}
