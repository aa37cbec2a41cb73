NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return read(y * input_size.x + x + 1);
}
EdgeValue {
  return value;
}
