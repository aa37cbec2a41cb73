NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  bool b = 1;
  Float c = 2;
  return float(b) + (long) c;
}
EdgeValue {
  return value;
}
