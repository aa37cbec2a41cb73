#!/bin/sh
# The linker of libStencilPasses.so. LLVM's shared libraries come first, so that the archives behind
# them give only what these lack: MLIR's C interface.
lib="${MLIR_SYS_220_PREFIX:-/usr/lib/llvm-22}/lib"
exec cc -L"$lib" -Wl,--no-as-needed -lMLIR -lLLVM -Wl,--as-needed "$@"
