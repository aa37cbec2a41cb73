NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
ScalarVariables (float a, int n)
CellValue {
  float s = 0;
  while (s < 3) s += 1;
  do s += 1; while (s < 3);
  switch (n) { case 1: s = 2; }
  goto end;
  break;
  return s;
}
EdgeValue {
  return value;
}
