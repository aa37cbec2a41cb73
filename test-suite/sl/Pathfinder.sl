// The cheapest way down a wall, row by row. The wall is read-only data: row 0 comes first.
NumDimensions 1
StencilSize 1
DataType int
FunctionName runPathfinder
ScalarVariables ()
CellValue {
  int best = min(get(0), min(get(-1), get(1)));
  return best + read((iteration - 1) * input_size.x + x);
}
EdgeValue {
  return value;
}
