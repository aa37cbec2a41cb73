NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  if (x > 3) return 1;
  else if (x > 2) { float b = 2; }
}
EdgeValue {
  return value;
}
