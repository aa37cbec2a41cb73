NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (int x, float size_x)
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
