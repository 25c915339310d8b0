//===- LatheOps.td - Operations of the graph dialect ---------------*- tablegen -*-===//

#ifndef LATHE_IR_LATHE_OPS_TD
#define LATHE_IR_LATHE_OPS_TD

include "ir/lathe/LatheDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class Lathe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Lathe_Dialect, mnemonic, traits>;

class Lathe_PureOp<string mnemonic, list<Trait> traits = []>
    : Lathe_Op<mnemonic, !listconcat([Pure], traits)>;

/// An activation: rank 2 or 3, rows first, f32.
def Activation : TensorRankOf<[F32], [2, 3]>;
/// Rows of one hidden-like vector each.
def Rows : TensorRankOf<[F32], [2]>;
/// Rows of heads: [T, heads, head_dim].
def Heads : TensorRankOf<[F32], [3]>;
/// Rows quantized to int8 blocks.
def Q8Rows : TensorRankOf<[Q8Type], [2]>;
def TokenIds : TensorRankOf<[I32], [1]>;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

def WeightOp : Lathe_Op<"weight", [Symbol]> {
  let summary = "A named constant tensor of the model, by recipe";
  let description = [{
    Declares a weight: its symbol, its type and the recipe that makes its bytes.
    A matrix `[N, K]` has a `!lathe.block` element type; a vector is f32.
    `model_name` is the tensor's name in the source, for messages.

    ```mlir
    lathe.weight @blk.0.attn_q : tensor<576x576x!lathe.block<q4_1, rows>>
        = #lathe.source<file = 0, offset = 1744448, bytes = 207360>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
                       AnyAttr:$recipe,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name attr-dict `:` $type `=` $recipe";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::mlir::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def KvGroupOp : Lathe_Op<"kv_group", [Symbol]> {
  let summary = "A group of layers whose keys and values share pages";
  let description = [{
    Made by `kv-cache-layout`. A page holds 16 tokens of all layers of the
    group; a layer's keys start at `k_offsets[i]` in a page, its values at
    `v_offsets[i]`. K is stored `[head][d][16 tokens]`, V `[head][16 tokens][d]`
    in `element`: f16, bf16, f32, or i8 with a scale per token and head beside
    them (kernels/abi/KvTile.h has the bytes).
    `id` indexes the step's KV groups. `window` is 0 for a full group.

    ```mlir
    lathe.kv_group @full id(0) kind(<full>) window(0) element(f16)
        kv_heads(3) head_dim(64) layers([0, 1]) page_bytes(24576)
        k_offsets([0, 12288]) v_offsets([6144, 18432])
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$id, KvKindAttr:$kind,
                       IntAttr:$window, TypeAttr:$element, IntAttr:$kv_heads,
                       IntAttr:$head_dim, DenseI64ArrayAttr:$layers,
                       IntAttr:$page_bytes, DenseI64ArrayAttr:$k_offsets,
                       DenseI64ArrayAttr:$v_offsets,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `id` `(` $id `)` `kind` `(` $kind `)` `window` `(` $window `)`
    `element` `(` $element `)` `kv_heads` `(` $kv_heads `)`
    `head_dim` `(` $head_dim `)` `layers` `(` $layers `)`
    `page_bytes` `(` $page_bytes `)` `k_offsets` `(` $k_offsets `)`
    `v_offsets` `(` $v_offsets `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Index of model layer `layer` in this group, or -1.
    int64_t indexOfLayer(int64_t layer);
  }];
}

//===----------------------------------------------------------------------===//
// Rows in and out
//===----------------------------------------------------------------------===//

def EmbedOp : Lathe_PureOp<"embed",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Rows of the embedding matrix by token id";
  let description = [{
    `result[t] = weight[tokens[t]]`, dequantized to f32.

    ```mlir
    %x = lathe.embed %tokens, @token_embd : tensor<?xi32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins TokenIds:$tokens, FlatSymbolRefAttr:$weight);
  let results = (outs Rows:$result);
  let assemblyFormat = "$tokens `,` $weight attr-dict `:` type($tokens) `->` type($result)";
}

def PositionsOp : Lathe_PureOp<"positions",
    [AllTypesMatch<["tokens", "result"]>]> {
  let summary = "The absolute position of each row";
  let description = [{
    In sequence form 0, 1, 2, …; in step form the position of each row in its own
    sequence.

    ```mlir
    %p = lathe.positions %tokens : tensor<?xi32>
    ```
  }];
  let arguments = (ins TokenIds:$tokens);
  let results = (outs TokenIds:$result);
  let assemblyFormat = "$tokens attr-dict `:` type($tokens)";
}

//===----------------------------------------------------------------------===//
// Linear algebra
//===----------------------------------------------------------------------===//

def LinearOp : Lathe_PureOp<"linear",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "x · Wᵀ, plus a bias";
  let description = [{
    `result[t, n] = Σ_k input[t, k] · weight[n, k] (+ bias[n])`. The input is f32
    or, after `quantize-activations`, int8 blocks.

    ```mlir
    %q = lathe.linear %x, @blk.0.attn_q bias @blk.0.attn_q.bias
        : tensor<?x576xf32> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Rows, Q8Rows]>:$input,
                       FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict
    `:` type($input) `->` type($result)
  }];
}

def MergedLinearOp : Lathe_PureOp<"merged_linear",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Several linears over the same input";
  let description = [{
    One result per weight: made by `merge-linears` from linears that share their
    input. Weights keep their own formats; nothing is converted. An entry of
    `biases` is a symbol or `unit`.

    ```mlir
    %q, %k = lathe.merged_linear %x, [@q, @k] : tensor<?x576xf32>
        -> tensor<?x576xf32>, tensor<?x192xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Rows, Q8Rows]>:$input,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "weights">:$weights,
                       OptionalAttr<ArrayAttr>:$biases);
  let results = (outs Variadic<Rows>:$results);
  let assemblyFormat = [{
    $input `,` $weights (`biases` $biases^)? attr-dict
    `:` type($input) `->` type($results)
  }];
}

def MatmulOp : Lathe_PureOp<"matmul"> {
  let summary = "A batched product of two activations";
  let description = [{
    `[B, M, K] × [B, K, N] -> [B, M, N]`, or with `transpose_b`
    `[B, M, K] × [B, N, K] -> [B, M, N]`.

    ```mlir
    %s = lathe.matmul %q, %k transpose_b
        : tensor<9x?x64xf32>, tensor<9x?x64xf32> -> tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Heads:$lhs, Heads:$rhs, UnitAttr:$transpose_b);
  let results = (outs Heads:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`transpose_b` $transpose_b^)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

def ReshapeOp : Lathe_PureOp<"reshape"> {
  let summary = "The same values in another shape, rows kept";
  let description = [{
    Splits or joins trailing dimensions: `[T, H·D] <-> [T, H, D]`.

    ```mlir
    %h = lathe.reshape %q : tensor<?x576xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Activation:$input);
  let results = (outs Activation:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TransposeOp : Lathe_PureOp<"transpose"> {
  let summary = "Swaps rows and heads";
  let description = [{
    `[A, B, D] -> [B, A, D]`.

    ```mlir
    %t = lathe.transpose %q : tensor<?x9x64xf32> -> tensor<9x?x64xf32>
    ```
  }];
  let arguments = (ins Heads:$input);
  let results = (outs Heads:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def RepeatHeadsOp : Lathe_PureOp<"repeat_heads"> {
  let summary = "Each head `times` times in a row";
  let description = [{
    How grouped-query attention is written before fusion: query head h reads
    KV head h / times. `[T, H, D] -> [T, H·times, D]`.

    ```mlir
    %r = lathe.repeat_heads %k times 3 : tensor<?x3x64xf32> -> tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins Heads:$input, IntAttr:$times);
  let results = (outs Heads:$result);
  let assemblyFormat = "$input `times` $times attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class Lathe_UnaryOp<string mnemonic, list<Trait> traits = []>
    : Lathe_PureOp<mnemonic,
        !listconcat([SameOperandsAndResultType, Elementwise], traits)> {
  let arguments = (ins Activation:$input);
  let results = (outs Activation:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

class Lathe_BinaryOp<string mnemonic, list<Trait> traits = []>
    : Lathe_PureOp<mnemonic,
        !listconcat([SameOperandsAndResultType, Elementwise], traits)> {
  let arguments = (ins Activation:$lhs, Activation:$rhs);
  let results = (outs Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}

def AddOp : Lathe_BinaryOp<"add"> {
  let summary = "lhs + rhs";
  let description = [{
    ```mlir
    %y = lathe.add %x, %r : tensor<?x576xf32>
    ```
  }];
}

def MulOp : Lathe_BinaryOp<"mul"> {
  let summary = "lhs · rhs";
  let description = [{
    ```mlir
    %y = lathe.mul %g, %u : tensor<?x1536xf32>
    ```
  }];
}

def SiluOp : Lathe_UnaryOp<"silu"> {
  let summary = "x / (1 + exp(-x))";
  let description = [{
    ```mlir
    %y = lathe.silu %x : tensor<?x1536xf32>
    ```
  }];
}

def GeluOp : Lathe_UnaryOp<"gelu"> {
  let summary = "GELU in its tanh form";
  let description = [{
    `0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))` (Hendrycks and Gimpel,
    arXiv 1606.08415, section 2).

    ```mlir
    %y = lathe.gelu %x : tensor<?x2048xf32>
    ```
  }];
}

def ScaleOp : Lathe_PureOp<"scale", [SameOperandsAndResultType, Elementwise]> {
  let summary = "x · factor";
  let description = [{
    ```mlir
    %y = lathe.scale %x by 1.250000e-01 : tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Activation:$input, F32Attr:$factor);
  let results = (outs Activation:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasFolder = 1;
}

def SoftcapOp : Lathe_PureOp<"softcap", [SameOperandsAndResultType, Elementwise]> {
  let summary = "cap · tanh(x · (1 / cap))";
  let description = [{
    ```mlir
    %y = lathe.softcap %x cap 5.000000e+01 : tensor<9x?x?xf32>
    ```
  }];
  let arguments = (ins Activation:$input, F32Attr:$cap);
  let results = (outs Activation:$result);
  let assemblyFormat = "$input `cap` $cap attr-dict `:` type($input)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Norms, rotary embedding, attention
//===----------------------------------------------------------------------===//

def RmsNormOp : Lathe_PureOp<"rms_norm",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square norm over the last dimension";
  let description = [{
    `x · (1 / √(mean(x²) + epsilon)) · weight` (Zhang and Sennrich,
    arXiv 1910.07467, equation 4). On heads, `[T, H, D]`, each head is normed by
    itself with the same weight `[D]`: QK-norm.

    ```mlir
    %n = lathe.rms_norm %x, @blk.0.attn_norm epsilon 1.0e-05 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Activation:$input, FlatSymbolRefAttr:$weight,
                       F32Attr:$epsilon);
  let results = (outs Activation:$result);
  let assemblyFormat = [{
    $input `,` $weight `epsilon` $epsilon attr-dict `:` type($input)
  }];
}

def RopeOp : Lathe_PureOp<"rope",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     AllTypesMatch<["input", "result"]>]> {
  let summary = "Rotary position embedding of heads";
  let description = [{
    Rotates pairs of the first `2·P` values of each head, where the table
    `[context, P, 2]` holds (cos, sin) per position and pair, times the scale of
    yarn if any (Su et al., arXiv 2104.09864, section 3.4). `style` says which
    values pair up.

    ```mlir
    %r = lathe.rope %q, %positions, @rope style <adjacent>
        : tensor<?x9x64xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins Heads:$input, TokenIds:$positions,
                       FlatSymbolRefAttr:$table, RopeStyleAttr:$style);
  let results = (outs Heads:$result);
  let assemblyFormat = [{
    $input `,` $positions `,` $table `style` $style attr-dict
    `:` type($input) `,` type($positions)
  }];
}

def MaskOp : Lathe_PureOp<"mask", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Scores of keys that a row may not see become -inf";
  let description = [{
    `input[h, t, s]` stays if `positions[s] <= positions[t]` and, with
    `window = W > 0`, `positions[t] - positions[s] < W`; else it becomes -inf.

    ```mlir
    %m = lathe.mask %s, %positions window 0 : tensor<9x?x?xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins Heads:$input, TokenIds:$positions, IntAttr:$window);
  let results = (outs Heads:$result);
  let assemblyFormat = [{
    $input `,` $positions `window` $window attr-dict
    `:` type($input) `,` type($positions)
  }];
  let hasVerifier = 1;
}

def SoftmaxOp : Lathe_UnaryOp<"softmax"> {
  let summary = "Softmax over the last dimension";
  let description = [{
    ```mlir
    %p = lathe.softmax %m : tensor<9x?x?xf32>
    ```
  }];
}

def AttentionOp : Lathe_PureOp<"attention"> {
  let summary = "Causal attention over one whole sequence, fused";
  let description = [{
    `softmax(mask(softcap(scale · q·kᵀ)))·v`, query head h with KV head
    `h / (H / Hkv)`. Made by `fuse-attention`; sequence form only. `softcap` is 0
    for none, `window` 0 for full causal attention.

    ```mlir
    %o = lathe.attention %q, %k, %v, %positions scale 1.25e-01 window 0 softcap 0.0
        : tensor<?x9x64xf32>, tensor<?x3x64xf32>, tensor<?x3x64xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins Heads:$query, Heads:$key, Heads:$value,
                       TokenIds:$positions, F32Attr:$scale, IntAttr:$window,
                       F32Attr:$softcap);
  let results = (outs Heads:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $positions `scale` $scale `window` $window
    `softcap` $softcap attr-dict `:` type($query) `,` type($key) `,`
    type($value) `,` type($positions) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Activations in int8
//===----------------------------------------------------------------------===//

def QuantizeRowsOp : Lathe_PureOp<"quantize_rows"> {
  let summary = "Rows to int8 blocks of 32";
  let description = [{
    docs/numerics.md, "Activation blocks": per block of 32 values d = amax/127
    and q = round to nearest even of x·(127/amax). K is padded with zeros to a
    multiple of 32.

    ```mlir
    %q = lathe.quantize_rows %x : tensor<?x576xf32> -> tensor<?x576x!lathe.q8>
    ```
  }];
  let arguments = (ins Rows:$input);
  let results = (outs Q8Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Step form
//===----------------------------------------------------------------------===//

def KvAppendOp : Lathe_PureOp<"kv_append",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Writes the step's keys and values into the paged cache";
  let description = [{
    Row t goes to its sequence's page `position / 16`, token `position % 16`, of
    `layer` in `group`. The result is the batch whose cache holds the rows.

    ```mlir
    %b1 = lathe.kv_append %b0, %k, %v into @full layer 0
        : tensor<?x3x64xf32>, tensor<?x3x64xf32>
    ```
  }];
  let arguments = (ins BatchType:$batch, Heads:$key, Heads:$value,
                       FlatSymbolRefAttr:$group, IntAttr:$layer);
  let results = (outs BatchType:$result);
  let assemblyFormat = [{
    $batch `,` $key `,` $value `into` $group `layer` $layer attr-dict
    `:` type($key) `,` type($value)
  }];
}

def PagedAttentionOp : Lathe_PureOp<"paged_attention",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     AllTypesMatch<["query", "result"]>]> {
  let summary = "Attention of the step's rows over the paged cache";
  let description = [{
    As `lathe.attention`, with K and V of the row's own sequence read from the
    cache (vLLM, arXiv 2309.06180, section 4.1), the rows of this step included.

    ```mlir
    %o = lathe.paged_attention %b1, %q from @full layer 0 scale 1.25e-01 window 0
        softcap 0.0 : tensor<?x9x64xf32>
    ```
  }];
  let arguments = (ins BatchType:$batch, Heads:$query,
                       FlatSymbolRefAttr:$group, IntAttr:$layer, F32Attr:$scale,
                       IntAttr:$window, F32Attr:$softcap);
  let results = (outs Heads:$result);
  let assemblyFormat = [{
    $batch `,` $query `from` $group `layer` $layer `scale` $scale
    `window` $window `softcap` $softcap attr-dict `:` type($query)
  }];
}

#endif // LATHE_IR_LATHE_OPS_TD
