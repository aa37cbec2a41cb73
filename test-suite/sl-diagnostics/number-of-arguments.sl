NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  return get(0) + sqrt() + pow(1, 2, 3) + read(1, 2);
}
EdgeValue {
  return value;
}
