NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float *p = &a;
  return *p + p->q;
}
EdgeValue {
  return value;
}
