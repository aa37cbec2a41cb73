NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  struct s { int a; };
  return sizeof(int);
}
EdgeValue {
  return value;
}
