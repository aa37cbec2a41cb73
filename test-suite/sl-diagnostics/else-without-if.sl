NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  else return 1;
  return 2;
}
EdgeValue {
  return value;
}
