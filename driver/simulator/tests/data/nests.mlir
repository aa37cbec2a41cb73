// Nests of upstream's affine loops. Each has its expected result in nests.rs.
module {
  func.func @mv(%x: memref<?xf32>, %a: memref<?x?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to %n {
      affine.store %zero, %x[%i] : memref<?xf32>
      affine.for %j = 0 to %m {
        %0 = affine.load %x[%i] : memref<?xf32>
        %1 = affine.load %a[%i, %j] : memref<?x?xf32>
        %2 = affine.load %y[%j] : memref<?xf32>
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %0, %3 : f32
        affine.store %4, %x[%i] : memref<?xf32>
      }
    }
    return
  }

  func.func @tmv(%x: memref<?xf32>, %a: memref<?x?xf32>, %y: memref<?xf32>, %n: index, %m: index) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to %n {
      affine.store %zero, %x[%i] : memref<?xf32>
      affine.for %j = 0 to %m {
        %0 = affine.load %x[%i] : memref<?xf32>
        %1 = affine.load %a[%j, %i] : memref<?x?xf32>
        %2 = affine.load %y[%j] : memref<?xf32>
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %0, %3 : f32
        affine.store %4, %x[%i] : memref<?xf32>
      }
    }
    return
  }

  // The sum is carried by the loop, and the sizes are those of the arrays.
  func.func @mm(%c: memref<?x?xf64>, %a: memref<?x?xf64>, %b: memref<?x?xf64>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %a, %c0 : memref<?x?xf64>
    %k = memref.dim %a, %c1 : memref<?x?xf64>
    %m = memref.dim %b, %c1 : memref<?x?xf64>
    affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {
      %zero = arith.constant 0.0 : f64
      %sum = affine.for %l = 0 to %k iter_args(%before = %zero) -> f64 {
        %0 = affine.load %a[%i, %l] : memref<?x?xf64>
        %1 = affine.load %b[%l, %j] : memref<?x?xf64>
        %2 = arith.mulf %0, %1 : f64
        %3 = arith.addf %before, %2 : f64
        affine.yield %3 : f64
      }
      affine.store %sum, %c[%i, %j] : memref<?x?xf64>
    }
    return
  }

  func.func @conv2d(%o: memref<?x?xf32>, %a: memref<?x?xf32>, %w: memref<3x3xf32>, %n: index, %m: index) {
    affine.for %i = 0 to %n {
      affine.for %j = 0 to %m {
        affine.for %k = 0 to 3 {
          affine.for %l = 0 to 3 {
            %0 = affine.load %o[%i, %j] : memref<?x?xf32>
            %1 = affine.load %a[%i + %k, %j + %l] : memref<?x?xf32>
            %2 = affine.load %w[%k, %l] : memref<3x3xf32>
            %3 = arith.mulf %1, %2 : f32
            %4 = arith.addf %0, %3 : f32
            affine.store %4, %o[%i, %j] : memref<?x?xf32>
          }
        }
      }
    }
    return
  }

  func.func @saxpy(%y: memref<?xf32>, %x: memref<?xf32>, %f: memref<1xf32>, %n: index) {
    affine.parallel (%i) = (0) to (symbol(%n)) {
      %0 = affine.load %f[0] : memref<1xf32>
      %1 = affine.load %x[%i] : memref<?xf32>
      %2 = affine.load %y[%i] : memref<?xf32>
      %3 = math.fma %0, %1, %2 : f32
      affine.store %3, %y[%i] : memref<?xf32>
    }
    return
  }

  // A triangle with a step, bounds of two results, and integers.
  func.func @counts(%o: memref<8x8xi32>, %n: index) {
    %two = arith.constant 2 : i32
    affine.for %i = 0 to 8 step 3 {
      affine.for %j = max affine_map<(i) -> (i - 2, 1)>(%i) to min affine_map<(i)[n] -> (i + 2, n)>(%i)[%n] {
        %0 = arith.index_cast %j : index to i32
        %1 = arith.remsi %0, %two : i32
        %2 = affine.apply affine_map<(i, j) -> ((i * 8 + j) floordiv 2 mod 5)>(%i, %j)
        %3 = arith.index_cast %2 : index to i32
        %4 = arith.subi %3, %1 : i32
        affine.store %4, %o[%i, %j] : memref<8x8xi32>
      }
    }
    return
  }
}
