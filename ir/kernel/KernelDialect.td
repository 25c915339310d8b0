//===- KernelDialect.td - The schedule dialect ---------------------*- tablegen -*-===//

#ifndef LATHE_IR_KERNEL_DIALECT_TD
#define LATHE_IR_KERNEL_DIALECT_TD

include "ir/lathe/LatheDialect.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::lathe::ir";
  let summary = "How a target executes a step: kernels and launches.";
  let description = [{
    A *kernel* is a hand-written skeleton (`kernel.gemm`, `kernel.attention`,
    `kernel.rowwise`, `kernel.rope_append`, `kernel.embed`) with its constants
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
  let assemblyFormat = "";
}

def Store_F32 : I32EnumAttrCase<"F32", 0, "f32">;
def Store_Q8 : I32EnumAttrCase<"Q8", 1, "q8">;
def StoreEnum : I32EnumAttr<"Store",
    "how rows are stored: f32, or int8 activation blocks", [Store_F32, Store_Q8]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}
def StoreAttr : EnumAttr<Kernel_Dialect, StoreEnum, "store"> {
  let assemblyFormat = "`<` $value `>`";
}

def Side_Element : I32EnumAttrCase<"Element", 0, "element">;
def Side_Column : I32EnumAttrCase<"Column", 1, "column">;
def Side_Row : I32EnumAttrCase<"Row", 2, "row">;
def SideEnum : I32EnumAttr<"Side",
    "what a side operand is indexed by: (row, column), column or row",
    [Side_Element, Side_Column, Side_Row]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}
def SideAttr : EnumAttr<Kernel_Dialect, SideEnum, "side"> {
  let assemblyFormat = "`<` $value `>`";
}

def LaunchRows_Tokens : I32EnumAttrCase<"Tokens", 0, "T">;
def LaunchRows_Sequences : I32EnumAttrCase<"Sequences", 1, "S">;
def LaunchRows_Head : I32EnumAttrCase<"Head", 2, "R">;
def LaunchRows_Work : I32EnumAttrCase<"Work", 3, "work">;
def LaunchRowsEnum : I32EnumAttr<"LaunchRows",
    "which live count of the step a launch runs over",
    [LaunchRows_Tokens, LaunchRows_Sequences, LaunchRows_Head, LaunchRows_Work]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}
def LaunchRowsAttr : EnumAttr<Kernel_Dialect, LaunchRowsEnum, "rows"> {
  let assemblyFormat = "`<` $value `>`";
}

def InputKind_Hidden : I32EnumAttrCase<"Hidden", 0, "hidden">;
def InputKind_HeadInput : I32EnumAttrCase<"HeadInput", 1, "head_input">;
def InputKind_Logits : I32EnumAttrCase<"Logits", 2, "logits">;
def StepBufferEnum : I32EnumAttr<"StepBuffer",
    "a buffer that the runtime passes to a step",
    [InputKind_Hidden, InputKind_HeadInput, InputKind_Logits]> {
  let cppNamespace = "::lathe::ir";
  let genSpecializedAttr = 0;
}
def StepBufferAttr : EnumAttr<Kernel_Dialect, StepBufferEnum, "step_buffer"> {
  let assemblyFormat = "`<` $value `>`";
}

def SizeAttr : Kernel_Attr<"Size", "size"> {
  let summary = "A buffer's size: t·T + s·S + c·C + n·N + e bytes";
  let description = [{
    T, S, C and N are the capacities of rows, sequences, attention partials and
    threads that the runtime picks when it loads an engine.
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
  let parameters = (ins "int64_t":$n, FormatParameter:$format,
                        LayoutParameter:$layout, "bool":$paired,
                        EnumParameter<StoreEnum>:$store,
                        OptionalArrayRefParameter<"::lathe::ir::Side">:$sides);
  let assemblyFormat = [{
    `<` `n` `=` $n `,` `format` `=` $format `,` `layout` `=` $layout `,`
    `paired` `=` $paired `,` `store` `=` $store `,` `sides` `=`
    `[` (`]`) : ($sides^ `]`)? `>`
  }];
}

def StageAttr : Kernel_Attr<"Stage", "stage"> {
  let summary = "One stage of a rowwise kernel";
  let description = [{
    The stage norms the row if `rms` (with `epsilon`), applies its region
    (value, sides…) to each element, stores the row in each of `stores`, and
    hands it to the next stage.
  }];
  let parameters = (ins "bool":$rms, "::mlir::FloatAttr":$epsilon,
                        OptionalArrayRefParameter<"::lathe::ir::Side">:$sides,
                        OptionalArrayRefParameter<"::lathe::ir::Store">:$stores);
  let assemblyFormat = [{
    `<` `rms` `=` $rms `,` `epsilon` `=` $epsilon `,` `sides` `=`
    `[` (`]`) : ($sides^ `]`)? `,` `stores` `=` `[` (`]`) : ($stores^ `]`)? `>`
  }];
}

#endif // LATHE_IR_KERNEL_DIALECT_TD
