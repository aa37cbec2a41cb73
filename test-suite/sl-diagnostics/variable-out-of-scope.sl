NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  { float inner = 1; }
  return inner;
}
EdgeValue {
  return value;
}
