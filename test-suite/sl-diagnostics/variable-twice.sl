NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runTest
CellValue {
  float a = 1, a = 2;
  if (a > 1) {
    float a = 3;
    int a = 4;
  }
  for (int k = 0; k < 2; k++) {
    int k = 1;
    float b;
    float b[2];
  }
  return a;
}
EdgeValue {
  return value;
}
