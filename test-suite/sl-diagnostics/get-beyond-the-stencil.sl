NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(2, 0) + get(0, -3);
}
EdgeValue {
  return value;
}
