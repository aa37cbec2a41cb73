// Shortest paths by Floyd and Warshall. Each loop carries a dependence, so that one thread runs it: that paths
// by way of a node leave its own paths alone follows from the values, and not from the indices.
func.func @floyd(
    %D: memref<?x?xi32> {stencil.name = "D", stencil.extents = ["N", "N"]},
    %n: index {stencil.name = "N"}) {
  affine.for %k = 0 to %n {
    affine.for %i = 0 to %n {
      affine.for %j = 0 to %n {
        %0 = affine.load %D[%i, %j] : memref<?x?xi32>
        %1 = affine.load %D[%i, %k] : memref<?x?xi32>
        %2 = affine.load %D[%k, %j] : memref<?x?xi32>
        %3 = arith.addi %1, %2 : i32
        %4 = arith.minsi %0, %3 : i32
        affine.store %4, %D[%i, %j] : memref<?x?xi32>
      }
    }
  }
  return
}
