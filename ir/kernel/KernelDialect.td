//===- KernelDialect.td - The schedule dialect ---------------------*- tablegen -*-===//

#ifndef LATHE_IR_KERNEL_DIALECT_TD
#define LATHE_IR_KERNEL_DIALECT_TD

include "ir/kernel/KernelEnums.td"
include "ir/lathe/LatheDialect.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::lathe::ir";
  let summary = "How a target executes a step: kernels and launches.";
  let description = [{
    A *kernel* is a hand-written skeleton (`kernel.gemm`, `kernel.attention`,
    `kernel.rowwise`, `kernel.rope_append`, `kernel.embed`, `kernel.contract`) with its constants
    and small *element regions*: single-block, branch-free `arith`/`math` on
    scalars that codegen prints as functors. A *program* is the ordered list of
    launches of one entry point over buffers.

    Element regions see one element: no loads, no reductions, no neighbours. The
    one exception is a *paired* gemm segment, whose region gets two accumulators
    (gate and up of the same output).
  }];
  let dependentDialects = ["::lathe::ir::LatheDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

class Kernel_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Kernel_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

class Kernel_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Kernel_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def BufferType : Kernel_Type<"Buffer", "buffer"> {
  let summary = "Storage in one of the spaces of a program";
  let builderCall = "$_builder.getType<::lathe::ir::BufferType>()";
  let assemblyFormat = "";
}

def StoreAttr : EnumAttr<Kernel_Dialect, StoreEnum, "store"> {
  let assemblyFormat = "`<` $value `>`";
}

def SideAttr : EnumAttr<Kernel_Dialect, SideEnum, "side"> {
  let assemblyFormat = "`<` $value `>`";
}

def LaunchRowsAttr : EnumAttr<Kernel_Dialect, LaunchRowsEnum, "rows"> {
  let assemblyFormat = "`<` $value `>`";
}

def StepBufferAttr : EnumAttr<Kernel_Dialect, StepBufferEnum, "step_buffer"> {
  let assemblyFormat = "`<` $value `>`";
}

def ContractOpAttr : EnumAttr<Kernel_Dialect, ContractOpEnum, "contract_op"> {
  let assemblyFormat = "`<` $value `>`";
}

def SizeAttr : Kernel_Attr<"Size", "size"> {
  let summary = "A buffer's size: t·T + s·S + c·C + n·N + e bytes";
  let description = [{
    T, S, C and N are the capacities of rows, sequences, attention partials and
    threads that the runtime picks when it loads an engine. Without a KV cache C
    is T², for the scores of whole sequences.
    `#kernel.size<t = 2304, s = 0, c = 0, n = 0, e = 0>`
  }];
  let parameters = (ins "int64_t":$t, "int64_t":$s, "int64_t":$c, "int64_t":$n,
                        "int64_t":$e);
  let assemblyFormat = "`<` struct(params) `>`";
}

def SegmentAttr : Kernel_Attr<"Segment", "segment"> {
  let summary = "A run of output columns of a gemm with one weight";
  let description = [{
    `n` output columns. A `paired` segment reads a weight of 2·n rows in which
    16-row groups of two matrices alternate, and its region gets both
    accumulators. `sides` are the kinds of the region's further arguments.
  }];
  let parameters = (ins "int64_t":$n, "::lathe::ir::BlockType":$weight,
                        BoolParameter:$paired,
                        EnumParameter<StoreEnum>:$store,
                        OptionalArrayRefParameter<"::lathe::ir::Side">:$sides);
  let assemblyFormat = [{
    `<` `n` `=` $n `,` `weight` `=` $weight `,` `paired` `=` $paired `,`
    `store` `=` $store `,` `sides` `=` `[` (`]`) : ($sides^ `]`)? `>`
  }];
}

def StageAttr : Kernel_Attr<"Stage", "stage"> {
  let summary = "One stage of a rowwise kernel";
  let description = [{
    The stage norms the row if `rms` (with `epsilon`), applies its region
    (value, sides…) to each element, stores the row in each of `stores`, and
    hands it to the next stage.
  }];
  let parameters = (ins BoolParameter:$rms, "::mlir::FloatAttr":$epsilon,
                        OptionalArrayRefParameter<"::lathe::ir::Side">:$sides,
                        OptionalArrayRefParameter<"::lathe::ir::Store">:$stores);
  let assemblyFormat = [{
    `<` `rms` `=` $rms `,` `epsilon` `=` $epsilon `,` `sides` `=`
    `[` (`]`) : ($sides^ `]`)? `,` `stores` `=` `[` (`]`) : ($stores^ `]`)? `>`
  }];
}

#endif // LATHE_IR_KERNEL_DIALECT_TD
