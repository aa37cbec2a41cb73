// Heat that enters a plate at its edge: each cell becomes the mean of its eight neighbours.
NumDimensions 2
StencilSize (1, 1)
DataType float
FunctionName runPlateHalo
ScalarVariables (float hot, float cold)
CellValue {
  float sum = get(-1, -1) + get(0, -1) + get(1, -1);
  sum += get(-1, 0) + get(1, 0);
  sum += get(-1, 1) + get(0, 1) + get(1, 1);
  return sum / 8;
}
EdgeValue {
  // The upper edge is heated.
  if (y < 0) return hot;
  return cold;
}
