NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return read((int) get(0, 0)) + read(n);
}
EdgeValue {
  return value;
}
