//===- LatheDialect.td - The graph dialect and its types -----------*- tablegen -*-===//

#ifndef LATHE_IR_LATHE_DIALECT_TD
#define LATHE_IR_LATHE_DIALECT_TD

include "ir/lathe/LatheEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Lathe_Dialect : Dialect {
  let name = "lathe";
  let cppNamespace = "::lathe::ir";
  let summary = "What a language model means, op by op.";
  let description = [{
    A module in this dialect holds weights (`lathe.weight`, symbols that name
    bytes of the source file) and two functions:

    ```mlir
    func.func @body(%tokens: tensor<?xi32>) -> tensor<?x576xf32>
    func.func @head(%hidden: tensor<?x576xf32>) -> tensor<?x49152xf32>
    ```

    In *sequence form* the rows of `@body` are the tokens of one sequence from
    position 0. In *step form* (after `kv-cache-layout`) `@body` takes one more
    argument, `!lathe.batch`, and its rows are the step's tokens, ragged over
    sequences; only `lathe.kv_append` and `lathe.paged_attention` look at it.
    The module attribute `lathe.form` says which (`"sequence"` or `"step"`), and
    `lathe.phase` names the last phase of the pipeline that ran.

    The leading dimension of an activation is always the token rows, `?`.
    No tensor byte is ever in an attribute.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Module attribute: `"sequence"` or `"step"`.
    static constexpr llvm::StringLiteral formAttrName = "lathe.form";
    /// Module attribute: the last phase of the pipeline that ran.
    static constexpr llvm::StringLiteral phaseAttrName = "lathe.phase";
    /// Module attribute: the model's facts, see `#lathe.model`.
    static constexpr llvm::StringLiteral modelAttrName = "lathe.model";
    /// Module attribute: array of `#lathe.file`, the files that sources name.
    static constexpr llvm::StringLiteral filesAttrName = "lathe.files";

    void registerTypes();
    void registerAttributes();
  }];
}

class Lathe_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Lathe_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

class Lathe_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Lathe_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def FormatParameter
    : AttrOrTypeParameter<"::lathe::kernels::Format", "block format"> {
  let cppStorageType = "::lathe::kernels::Format";
  let parser = "::lathe::ir::parseFormat($_parser)";
  let printer = "$_printer << ::lathe::kernels::traitsOf($_self).mnemonic";
}

/// A 64-bit count or size whose accessor is signed.
def IntAttr : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer"> {
  let convertFromStorage = "$_self.getInt()";
}

def BoolParameter : AttrOrTypeParameter<"bool", "true or false"> {
  let parser = "::lathe::ir::parseBool($_parser)";
  let printer = "$_printer << ($_self ? \"true\" : \"false\")";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def BlockType : Lathe_Type<"Block", "block"> {
  let summary = "An element of a weight stored in a GGUF block format";
  let description = [{
    The element type of matrices that `lathe.linear` and `lathe.embed` read. The
    format says how blocks of a row encode values (`f32`, `f16` and `bf16` are
    formats with one value a block); the layout says how the file or the engine
    orders the bits: `rows` for the source's own order, `r16` for sixteen rows
    interleaved.

    Example: `tensor<576x576x!lathe.block<q4_1, rows>>`.
  }];
  let parameters = (ins FormatParameter:$format, EnumParameter<LayoutEnum>:$layout);
  let assemblyFormat = "`<` $format `,` $layout `>`";
}

def Q8Type : Lathe_Type<"Q8", "q8"> {
  let summary = "An element of an activation quantized to int8 per block of 32";
  let description = [{
    `tensor<?x576x!lathe.q8>` holds, per row, 18 activation blocks (scale, lane
    sums, 32 int8 values), the only input of a gemm on quantized weights.
  }];
  let assemblyFormat = "";
}

def BatchType : Lathe_Type<"Batch", "batch"> {
  let summary = "The step's ragged batch and the KV cache it works on";
  let description = [{
    Positions, sequence starts, page tables and the pages themselves, as one
    value. `lathe.kv_append` takes a batch and gives the batch whose cache holds
    the new rows, so that the order of writes and reads is data flow.
  }];
  let builderCall = "$_builder.getType<::lathe::ir::BatchType>()";
  let assemblyFormat = "";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def FileAttr : Lathe_Attr<"File", "file"> {
  let summary = "A source file that weights come from";
  let description = [{
    `#lathe.file<"model.gguf", 98362432, "7c43…">`: its name (for messages; the
    path is the compiler's business), its size in bytes and the SHA-256 of its
    content, in hex.
  }];
  let parameters = (ins StringRefParameter<"file name">:$name,
                        "uint64_t":$bytes,
                        StringRefParameter<"SHA-256 in hex">:$sha256);
  let assemblyFormat = "`<` $name `,` $bytes `,` $sha256 `>`";
}

def SourceAttr : Lathe_Attr<"Source", "source"> {
  let summary = "A recipe's leaf: a range of bytes of a source file";
  let description = [{
    `#lathe.source<file = 0, offset = 1744448, bytes = 207360>`; `file` indexes
    the module attribute `lathe.files`.
  }];
  let parameters = (ins "uint32_t":$file, "uint64_t":$offset,
                        "uint64_t":$bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

def RecipeAttr : Lathe_Attr<"Recipe", "recipe"> {
  let summary = "A named transform of other recipes";
  let description = [{
    `#lathe.recipe<"pack", {}, [#lathe.source<…>]>`. Known transforms, each a pure
    function of its inputs and parameters:

    | name | inputs | result |
    |---|---|---|
    | `pack` | one matrix | the same bits in the layout of the weight's type |
    | `interleave` | two matrices, same format and shape | 16-row groups in turn: input 0's first, input 1's first, … |
    | `rope_table` | none, or one f32 divisor per pair | f32 (cos, sin) per position and rotated pair, computed in f64 |
    | `convert` | one tensor | f16/bf16/f32 vector as f32 (exact) |
    | `coarse` | a `q8_0` matrix | its values rounded to `q5_0`, for `kernel.pick` |
    | `coarse_errors` | a `q8_0` matrix of rows of `k` | f32 per row: how far `coarse` is off (numerics.md, "Picking from a coarse head") |
  }];
  let parameters = (ins StringRefParameter<"transform">:$transform,
                        "::mlir::DictionaryAttr":$params,
                        OptionalArrayRefParameter<"::mlir::Attribute">:$inputs);
  let assemblyFormat = "`<` $transform `,` $params `,` `[` (`]`) : ($inputs^ `]`)? `>`";
}

def ModelAttr : Lathe_Attr<"Model", "model"> {
  let summary = "The model's facts that a program's user needs";
  let description = [{
    `#lathe.model<architecture = "llama", name = "SmolLM2", vocab = 49152,
    hidden = 576, layers = 30, positions = 8192>`. `vocab` counts the rows of the
    output matrix, `positions` those that the model was trained for.
  }];
  let parameters = (ins StringRefParameter<"architecture">:$architecture,
                        StringRefParameter<"name">:$name,
                        "int64_t":$vocab, "int64_t":$hidden, "int64_t":$layers,
                        "int64_t":$positions);
  let assemblyFormat = "`<` struct(params) `>`";
}

def RopeStyleAttr : EnumAttr<Lathe_Dialect, RopeStyleEnum, "rope_style"> {
  let assemblyFormat = "`<` $value `>`";
}

def KvKindAttr : EnumAttr<Lathe_Dialect, KvKindEnum, "kv_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif // LATHE_IR_LATHE_DIALECT_TD
