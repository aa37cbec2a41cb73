NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName return
ScalarVariables (float a, int n)
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
