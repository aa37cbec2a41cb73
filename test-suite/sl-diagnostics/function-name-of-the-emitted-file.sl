NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName keep
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
