// Life in three dimensions: a cell comes alive with 6 living neighbours of 26, and stays alive with
// 5 to 7.
NumDimensions 3
StencilSize (1, 1, 1)
DataType int
FunctionName runCell
ScalarVariables ()
CellValue {
  int self = get(0, 0, 0), alive = -self;
  for (int k = -1; k <= 1; k++)
    for (int j = -1; j <= 1; j++)
      for (int i = -1; i <= 1; i++)
        alive += get(i, j, k);
  if (alive == 6 || self == 1 && alive >= 5 && alive <= 7) return 1;
  return 0;
}
EdgeValue {
  return 0;
}
