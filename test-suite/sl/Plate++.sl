// Heat that enters a plate at its edge: each cell becomes the mean of eight neighbours, two to the
// north, south, east and west.
NumDimensions 2
StencilSize (2, 2)
DataType float
FunctionName runPlatePlus
ScalarVariables (float hot, float cold)
CellValue {
  float sum = get(0, -2) + get(0, -1) + get(0, 1) + get(0, 2);
  sum += get(-2, 0) + get(-1, 0) + get(1, 0) + get(2, 0);
  return sum / 8;
}
EdgeValue {
  // The upper edge is heated.
  if (y < 0) return hot;
  return cold;
}
