//===- KernelOps.td - Skeletons, programs and launches -------------*- tablegen -*-===//

#ifndef LATHE_IR_KERNEL_OPS_TD
#define LATHE_IR_KERNEL_OPS_TD

include "ir/kernel/KernelDialect.td"
include "ir/kernel/KernelInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, traits>;

/// A skeleton: a symbol at module level.
class Kernel_KernelOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, !listconcat(
        [Symbol, NoTerminator, IsolatedFromAbove,
         DeclareOpInterfaceMethods<KernelOpInterface>], traits)>;

def YieldOp : Kernel_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "The value of an element region";
  let description = [{
    ```mlir
    kernel.yield %y : f32
    ```
  }];
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Skeletons
//===----------------------------------------------------------------------===//

def EmbedKernelOp : Kernel_KernelOp<"embed", [SingleBlock]> {
  let summary = "Rows of a packed matrix by the step's token ids";
  let description = [{
    Operands: weight (`vocab` × `k`), out f32 `[T, k]`. The region maps one
    dequantized value to the stored one.

    ```mlir
    kernel.embed @k0 vocab(49152) k(576) weight(!lathe.block<q8_0, r16>) {
    ^bb0(%x: f32):
      kernel.yield %x : f32
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$vocab, IntAttr:$k,
                       TypeAttrOf<BlockType>:$weight,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$map);
  let assemblyFormat = [{
    $sym_name `vocab` `(` $vocab `)` `k` `(` $k `)` `weight` `(` $weight `)`
    attr-dict-with-keyword $map
  }];
  let hasVerifier = 1;
}

def RowwiseKernelOp : Kernel_KernelOp<"rowwise"> {
  let summary = "Stages over one row: norm, elementwise, quantize";
  let description = [{
    Operands: x f32 `[rows, k]`; then per stage its sides, in order; then per
    stage its stores, in order. With `replicated` the kernel may be run by each
    thread for all rows into its own scratch (up to `maxReplicatedRows` rows),
    otherwise rows are split over threads.

    The whole row stays in one thread. Norm sums are a fixed tree over 16 lanes
    (numerics.md, "GEMM and rowwise").

    ```mlir
    kernel.rowwise @k1 k(576) rows(<T>) replicated(true)
        stages([#kernel.stage<rms = true, epsilon = 1.0e-05 : f32,
                              sides = [column], stores = [q8]>]) {
    ^bb0(%x: f32, %w: f32):
      %y = arith.mulf %x, %w : f32
      kernel.yield %y : f32
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$k,
                       LaunchRowsAttr:$rows, BoolAttr:$replicated,
                       TypedArrayAttrBase<StageAttr, "stages">:$stages,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region VariadicRegion<SizedRegion<1>>:$maps);
  let assemblyFormat = [{
    $sym_name `k` `(` $k `)` `rows` `(` $rows `)` `replicated` `(` $replicated `)`
    `stages` `(` $stages `)` attr-dict-with-keyword $maps
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isReplicated() { return getReplicated(); }
    bool isRowLocal() { return true; }
  }];
}

def GemmKernelOp : Kernel_KernelOp<"gemm"> {
  let summary = "x · Wᵀ with epilogues, over segments of columns";
  let description = [{
    Operands: x (`[rows, k]`, f32 or q8 as `input` says); then one weight per
    segment; then per segment its sides; then one output per segment
    `[rows, n]`. One region per segment: (accumulator(s), sides…) -> value.
    Threads split the concatenated columns in units of 32.

    Each output is one chain of accumulations with ascending k (numerics.md,
    "GEMM and rowwise"), the same for any row count.

    ```mlir
    kernel.gemm @k2 k(576) rows(<T>) input(<q8>)
        segments([#kernel.segment<n = 576, weight = <q4_1, r16>,
                  paired = false, store = f32, sides = [element]>]) {
    ^bb0(%acc: f32, %residual: f32):
      %y = arith.addf %acc, %residual : f32
      kernel.yield %y : f32
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$k,
                       LaunchRowsAttr:$rows, StoreAttr:$input,
                       TypedArrayAttrBase<SegmentAttr, "segments">:$segments,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region VariadicRegion<SizedRegion<1>>:$epilogues);
  let assemblyFormat = [{
    $sym_name `k` `(` $k `)` `rows` `(` $rows `)` `input` `(` $input `)`
    `segments` `(` $segments `)` attr-dict-with-keyword $epilogues
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isRowLocal() { return true; }
  }];
}

def PickKernelOp : Kernel_KernelOp<"pick"> {
  let summary = "The token of each row, without all of its logits";
  let description = [{
    Operands: x q8 `[R, k]`, weight (`n` × `k`), the same weight coarse, the
    coarse rows' errors f32 `[n]` (recipes `coarse` and `coarse_errors`), bounds
    f32 `[R, n]` and state (`pickStateBytes` a row) as scratch, picked
    (`PickResult [R]`). How to pick is the step's `pickArgs`.

    The product with the coarse weight bounds every logit; the rows that may
    still win are computed exactly, as the gemm of `head` would (numerics.md,
    "Picking from a coarse head").

    ```mlir
    kernel.pick @k9 k(576) n(49152) weight(!lathe.block<q8_0, r16>)
        coarse(!lathe.block<q5_0, r16>)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$k, IntAttr:$n,
                       TypeAttrOf<BlockType>:$weight,
                       TypeAttrOf<BlockType>:$coarse,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `k` `(` $k `)` `n` `(` $n `)` `weight` `(` $weight `)`
    `coarse` `(` $coarse `)` attr-dict
  }];
  let hasVerifier = 1;
}

def RopeAppendKernelOp : Kernel_KernelOp<"rope_append"> {
  let summary = "QK-norm, rotary embedding, query scale, and KV append";
  let description = [{
    Operands: q f32 `[T, heads·head_dim]`, k and v f32 `[T, kv_heads·head_dim]`,
    rope table f32 `[context, rope_pairs, 2]` (absent if `rope_pairs` is 0),
    q-norm and k-norm weights f32 `[head_dim]` (absent unless `qk_norm`), the
    layer's K and V in the group's pool, q out f32 `[T, heads·head_dim]`.

    q out = rope(norm(q)) · q_scale; K gets rope(norm(k)), V gets v, both
    converted to `element` (f16, bf16, f32, or i8 with one scale per row and
    head), at the row's page and token.

    `own_chunk` is the chunk of the attention that follows if in steps of at most
    `maxReplicatedRows` rows each thread may prepare just what its own units of
    that attention read (q out then has a copy per thread), or 0.

    ```mlir
    kernel.rope_append @k3 group(0) heads(9) kv_heads(3) head_dim(64)
        rope_pairs(32) style(<adjacent>) qk_norm(false) epsilon(0.0)
        q_scale(1.25e-01) element(f16) own_chunk(128)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$group, IntAttr:$heads,
                       IntAttr:$kv_heads, IntAttr:$head_dim, IntAttr:$rope_pairs,
                       RopeStyleAttr:$style, BoolAttr:$qk_norm, F32Attr:$epsilon,
                       F32Attr:$q_scale, TypeAttr:$element, IntAttr:$own_chunk,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `group` `(` $group `)` `heads` `(` $heads `)`
    `kv_heads` `(` $kv_heads `)` `head_dim` `(` $head_dim `)`
    `rope_pairs` `(` $rope_pairs `)` `style` `(` $style `)`
    `qk_norm` `(` $qk_norm `)` `epsilon` `(` $epsilon `)`
    `q_scale` `(` $q_scale `)` `element` `(` $element `)`
    `own_chunk` `(` $own_chunk `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isReplicated() { return getOwnChunk() != 0; }
  }];
}

def AttentionKernelOp : Kernel_KernelOp<"attention"> {
  let summary = "Attention of the step's rows over a paged KV group";
  let description = [{
    Operands: q f32 `[T, heads·head_dim]` (scaled), the layer's K and V in the
    group's pool, partials f32 `[C][heads][head_dim + 2]` (o, m, l), out
    `[T, heads·head_dim]` stored as `store` says. Keys are cut into chunks of `chunk` tokens at absolute
    positions; a chunk's partial starts fresh and chunks combine left to right
    (numerics.md, "Attention"). Work comes from the step's work list.

    ```mlir
    kernel.attention @k4 group(0) heads(9) kv_heads(3) head_dim(64) chunk(128)
        window(0) softcap(0.0) element(f16) store(<q8>)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, IntAttr:$group, IntAttr:$heads,
                       IntAttr:$kv_heads, IntAttr:$head_dim, IntAttr:$chunk,
                       IntAttr:$window, F32Attr:$softcap, TypeAttr:$element,
                       StoreAttr:$store,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `group` `(` $group `)` `heads` `(` $heads `)`
    `kv_heads` `(` $kv_heads `)` `head_dim` `(` $head_dim `)`
    `chunk` `(` $chunk `)` `window` `(` $window `)` `softcap` `(` $softcap `)`
    `element` `(` $element `)`
    `store` `(` $store `)` attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isRowLocal() { return true; }
  }];
}

def ContractKernelOp : Kernel_KernelOp<"contract"> {
  let summary = "Activation products and shapes of a graph in sequence form";
  let description = [{
    Plain loops for what the fused phases would have removed: no engine compiled
    with all phases contains it. `dims`, -1 for the rows T:

    | op | dims | operands |
    |---|---|---|
    | `matmul` | B, M, K, N | [B, M, K], [B, K, N], out |
    | `matmul_transposed` | B, M, K, N | [B, M, K], [B, N, K], out |
    | `softmax` | A, B, N | x, out |
    | `mask` | B, M, N | x, out; `window` |
    | `map`, `combine` | A, B, C | one or two inputs of the region, out |
    | `transpose` | A, B, D | [A, B, D], out [B, A, D] |
    | `repeat_heads` | T, H, D, times | x, out |
    | `norm` | T, H, D | x, weight [D], out; `value` is epsilon |
    | `rope` | T, H, D, pairs | x, table, out; `style` |
    | `attention` | heads, KV heads, D | q, k, v, out; `value` is the scale |
    | `linear` | K, N | x f32, weight, (bias,) out; `weight` |

    ```mlir
    kernel.contract @k9 op(<softmax>) dims([9, -1, -1]) value(0.0) window(0)
        softcap(0.0) style(<adjacent>) bias(false)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ContractOpAttr:$op,
                       DenseI64ArrayAttr:$dims, F32Attr:$value,
                       IntAttr:$window, F32Attr:$softcap, RopeStyleAttr:$style,
                       OptionalAttr<TypeAttrOf<BlockType>>:$weight,
                       BoolAttr:$bias, OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region VariadicRegion<SizedRegion<1>>:$maps);
  let assemblyFormat = [{
    $sym_name `op` `(` $op `)` `dims` `(` $dims `)` `value` `(` $value `)`
    `window` `(` $window `)` `softcap` `(` $softcap `)` `style` `(` $style `)`
    (`weight` `(` $weight^ `)`)? `bias` `(` $bias `)` attr-dict-with-keyword
    $maps
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def ProgramOp : Kernel_Op<"program",
    [Symbol, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "The launches of one entry point, in order";
  let description = [{
    The only description of an execution: the CPU's step function is printed
    from it, the engine stores it.

    ```mlir
    kernel.program @body {
      %x = kernel.alloc #kernel.size<t = 2304, s = 0, c = 0, n = 0, e = 0>
      %w = kernel.weight @token_embd
      kernel.launch @k0(%w, %x)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

class Kernel_BufferOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, !listconcat([Pure, HasParent<"ProgramOp">], traits)> {
  let results = (outs BufferType:$result);
}

def AllocOp : Kernel_Op<"alloc", [HasParent<"ProgramOp">]> {
  let summary = "A buffer of the arena";
  let description = [{
    `slot` is absent until `plan-memory` has put the buffer into a slot; buffers
    of one slot are never alive together.

    ```mlir
    %x = kernel.alloc #kernel.size<t = 2304, s = 0, c = 0, n = 0, e = 0> slot 2
    ```
  }];
  let arguments = (ins SizeAttr:$size, OptionalAttr<IntAttr>:$slot);
  let results = (outs BufferType:$result);
  let assemblyFormat = "$size (`slot` $slot^)? attr-dict";
  let hasVerifier = 1;
}

def WeightRefOp : Kernel_BufferOp<"weight",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A weight of the engine";
  let description = [{
    ```mlir
    %w = kernel.weight @blk.0.attn_q
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let assemblyFormat = "$weight attr-dict";
}

def KvPoolOp : Kernel_BufferOp<"kv_pool"> {
  let summary = "A layer's keys or values in the pages of a group";
  let description = [{
    Where the part at `offset` of the group's pages starts in its pool; pages lie
    there head by head (KvGroupArgs of kernels/abi/StepArgs.h).

    ```mlir
    %k = kernel.kv_pool group 0 offset 12288
    ```
  }];
  let arguments = (ins IntAttr:$group, IntAttr:$offset);
  let assemblyFormat = "`group` $group `offset` $offset attr-dict";
}

def StepBufferOp : Kernel_BufferOp<"step_buffer"> {
  let summary = "A buffer that the runtime passes to the step";
  let description = [{
    ```mlir
    %h = kernel.step_buffer <hidden>
    ```
  }];
  let arguments = (ins StepBufferAttr:$kind);
  let assemblyFormat = "$kind attr-dict";
}

def LaunchOp : Kernel_Op<"launch",
    [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One kernel over buffers";
  let description = [{
    Operands follow the kernel's operand list. A `wanted` launch, marked so by
    `skip-unwanted-rows`, runs for the rows whose hidden states are wanted alone
    (for all in steps of at most `maxReplicatedRows` rows). `waits`, filled by
    `plan-memory`, are the indices (in the program) of earlier launches that must
    be complete.

    ```mlir
    kernel.launch @k2(%xq, %w, %residual, %out) wanted waits [3]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<BufferType>:$buffers,
                       UnitAttr:$wanted, OptionalAttr<DenseI64ArrayAttr>:$waits);
  let assemblyFormat = [{
    $kernel `(` $buffers `)` (`wanted` $wanted^)? (`waits` $waits^)? attr-dict
  }];
}

#endif // LATHE_IR_KERNEL_OPS_TD
