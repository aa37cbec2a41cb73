NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return a.x + get(0, 0).y;
}
EdgeValue {
  return value;
}
