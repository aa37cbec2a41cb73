NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return read(get(0, 0)) + read(0.5);
}
EdgeValue {
  return value;
}
