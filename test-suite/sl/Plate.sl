// Heat that enters a plate at its edge: each cell becomes the mean of its four neighbours.
NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runPlate
ScalarVariables (float hot, float cold)
CellValue {
  return (get(0, -1) + get(-1, 0) + get(1, 0) + get(0, 1)) / 4;
}
EdgeValue {
  // The upper edge is heated.
  if (y < 0) return hot;
  return cold;
}
