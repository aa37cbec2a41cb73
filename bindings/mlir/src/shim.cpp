// The passes of stencilc as passes of MLIR's C++ interface, for a tool that loads plugins.
//
// A pass is a number; its name, its options and its work are functions of lib.rs. Everything of
// MLIR that is called here comes from the tool's own libMLIR.so.

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/CAPI/IR.h"

extern "C" {
size_t stencil_pass_count();
// The name of a pass, and what it does; both end with a zero and are never freed.
const char *stencil_pass_name(size_t pass);
const char *stencil_pass_summary(size_t pass);
// Whether the options are some of the pass; if not, `wrong` is called with the reason.
bool stencil_pass_takes(size_t pass, MlirStringRef options, void *context,
                        void (*wrong)(void *context, MlirStringRef why));
// Runs the pass. A failure has emitted an error.
bool stencil_pass_run(size_t pass, MlirStringRef options, MlirModule module);
}

namespace {

// One identity for each pass, as long as the library is loaded.
mlir::TypeID identity(size_t pass) {
  static mlir::TypeIDAllocator allocator;
  static std::vector<mlir::TypeID> known;
  while (known.size() <= pass)
    known.push_back(allocator.allocate());
  return known[pass];
}

MlirStringRef text(const std::string &string) {
  return mlirStringRefCreate(string.data(), string.size());
}

class StencilPass : public mlir::OperationPass<mlir::ModuleOp> {
public:
  explicit StencilPass(size_t pass)
      : OperationPass(identity(pass)), pass(pass) {}
  StencilPass(const StencilPass &other)
      : OperationPass(other), pass(other.pass), options(other.options) {}

  llvm::StringRef getName() const override { return stencil_pass_name(pass); }
  llvm::StringRef getArgument() const override {
    return stencil_pass_name(pass);
  }
  llvm::StringRef getDescription() const override {
    return stencil_pass_summary(pass);
  }

  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect,
                    mlir::cf::ControlFlowDialect, mlir::DLTIDialect,
                    mlir::func::FuncDialect, mlir::gpu::GPUDialect,
                    mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                    mlir::memref::MemRefDialect, mlir::nvgpu::NVGPUDialect,
                    mlir::NVVM::NVVMDialect, mlir::scf::SCFDialect,
                    mlir::ub::UBDialect, mlir::vector::VectorDialect>();
    mlir::registerAllToLLVMIRTranslations(registry);
  }

  llvm::LogicalResult initializeOptions(
      llvm::StringRef given,
      llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> fail)
      override {
    options = given.str();
    auto wrong = [](void *context, MlirStringRef why) {
      *static_cast<std::string *>(context) = std::string(why.data, why.length);
    };
    std::string reason;
    if (stencil_pass_takes(pass, text(options), &reason, wrong))
      return llvm::success();
    return fail(reason);
  }

  void runOnOperation() override {
    if (!stencil_pass_run(pass, text(options), wrap(getOperation())))
      signalPassFailure();
  }

protected:
  std::unique_ptr<Pass> clonePass() const override {
    return std::make_unique<StencilPass>(*this);
  }

private:
  size_t pass;
  std::string options;
};

} // namespace

// Registers all passes with the tool.
extern "C" void stencil_register_passes() {
  for (size_t pass = 0; pass < stencil_pass_count(); ++pass)
    mlir::registerPass([pass] { return std::make_unique<StencilPass>(pass); });
}
