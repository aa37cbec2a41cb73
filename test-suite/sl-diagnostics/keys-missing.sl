NumDimensions 1
