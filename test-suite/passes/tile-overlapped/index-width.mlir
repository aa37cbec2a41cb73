// RUN: stencilc %programs/heat2d.stencil --emit=tiled -D N=344 -D M=403 | FileCheck %s --check-prefix=NARROW
// RUN: stencilc %programs/heat2d.stencil --emit=tiled -D N=344 | FileCheck %s --check-prefix=WIDE
// RUN: stencilc %programs/heat2d.stencil --emit=tiled -D N=65536 -D M=32768 | FileCheck %s --check-prefix=WIDE
// Indices have 32 bits only where all sizes are known and all cells can be counted with them.

// NARROW: tiled.index_width = 32 : i64
// WIDE: tiled.index_width = 64 : i64
