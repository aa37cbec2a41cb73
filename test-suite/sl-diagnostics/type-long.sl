NumDimensions 2
StencilSize (1, 1)
DataType long long
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
