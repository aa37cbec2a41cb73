NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName main
CellValue {
  return get(0, 0);
}
EdgeValue {
  return value;
}
