//===- KernelInterfaces.td - What all skeletons share --------------*- tablegen -*-===//

#ifndef LATHE_IR_KERNEL_INTERFACES_TD
#define LATHE_IR_KERNEL_INTERFACES_TD

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::lathe::ir";
  let description = [{
    A kernel: a skeleton with constants. The operand list is the contract between
    the kernel, its launches, the generated code and the engine's program.
  }];
  let methods = [
    InterfaceMethod<"The operands of a launch, in order.",
      "::llvm::SmallVector<::lathe::ir::OperandInfo>", "operandInfos">,
    InterfaceMethod<"The skeleton's name.", "::llvm::StringRef", "skeletonName">,
    InterfaceMethod<"What the kernel runs over.", "::lathe::ir::LaunchRows", "launchRows">,
    InterfaceMethod<"Bytes of weights that one launch reads.", "int64_t", "weightBytes">,
    InterfaceMethod<"Multiply-adds per row.", "int64_t", "macsPerRow">,
    InterfaceMethod<"In steps of at most maxReplicatedRows rows each thread does "
                    "for itself, into its own copies of the outputs, what it "
                    "reads later: nobody waits for it.",
      "bool", "isReplicated", (ins), "", "return false;">,
    InterfaceMethod<"A row of the outputs depends on the same row of the "
                    "operands only, and on the KV cache.",
      "bool", "isRowLocal", (ins), "", "return false;">,
  ];
}

#endif // LATHE_IR_KERNEL_INTERFACES_TD
