//===- Passes.td - Lathe's passes ----------------------------------*- tablegen -*-===//

#ifndef LATHE_PASSES_TD
#define LATHE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FuseAttention : Pass<"fuse-attention", "::mlir::ModuleOp"> {
  let summary = "Decomposed attention becomes lathe.attention";
  let description = [{
    Finds matmul, scale, (softcap,) mask, softmax, matmul around transposed and
    repeated heads, and replaces them by one op: MHA, GQA and MQA alike, with a
    window or a soft-cap where there is one. A softmax that stays is a remark,
    with the part that does not match.

    Before:
    ```mlir
    %kr = lathe.repeat_heads %k times 3
    %qt = lathe.transpose %q … %kt = lathe.transpose %kr … %vt = …
    %s = lathe.matmul %qt, %kt transpose_b
    %c = lathe.scale %s by 0.125
    %m = lathe.mask %c, %positions window 0
    %p = lathe.softmax %m
    %o = lathe.matmul %p, %vt
    %r = lathe.transpose %o
    ```
    After:
    ```mlir
    %r = lathe.attention %q, %k, %v, %positions scale 0.125 window 0 softcap 0.0
    ```
  }];
  let dependentDialects = ["::lathe::ir::LatheDialect"];
  let statistics = [Statistic<"fused", "fused", "Number of attentions fused">];
}

def MergeLinears : Pass<"merge-linears", "::mlir::ModuleOp"> {
  let summary = "Linears over one input become one lathe.merged_linear";
  let description = [{
    q, k, v and gate, up read their input once. Weights keep their formats; only
    quantized and float weights are not mixed, since their inputs differ, and a
    remark tells where both read one input.

    Before:
    ```mlir
    %g = lathe.linear %x, @gate
    %u = lathe.linear %x, @up
    ```
    After:
    ```mlir
    %g, %u = lathe.merged_linear %x, [@gate, @up]
    ```
  }];
  let dependentDialects = ["::lathe::ir::LatheDialect"];
  let statistics = [Statistic<"merged", "merged", "Number of merged linears made">];
}

def QuantizeActivations : Pass<"quantize-activations", "::mlir::ModuleOp"> {
  let summary = "Inputs of quantized weights become int8 blocks";
  let description = [{
    Inserts one `lathe.quantize_rows` per value that feeds linears with quantized
    weights.

    Before:
    ```mlir
    %y = lathe.linear %x, @w : tensor<?x576xf32> -> tensor<?x576xf32>
    ```
    After:
    ```mlir
    %q = lathe.quantize_rows %x : tensor<?x576xf32> -> tensor<?x576x!lathe.q8>
    %y = lathe.linear %q, @w : tensor<?x576x!lathe.q8> -> tensor<?x576xf32>
    ```
  }];
  let dependentDialects = ["::lathe::ir::LatheDialect"];
}

def KvCacheLayout : Pass<"kv-cache-layout", "::mlir::ModuleOp"> {
  let summary = "The whole-sequence graph becomes a step over a paged KV cache";
  let description = [{
    `@body` gets a `!lathe.batch` and each `lathe.attention` becomes an append of
    the step's keys and values and an attention over the cache: from O(n²) work
    for n tokens to O(n). Layers with the same window and head shape share a
    `lathe.kv_group`, whose page holds 16 tokens of all of them. Fails at the op
    if an attention has not been fused.

    Before:
    ```mlir
    %o = lathe.attention %q, %k, %v, %positions scale 0.125 window 0 softcap 0.0
    ```
    After:
    ```mlir
    lathe.kv_group @full id(0) kind(<full>) …
    %b1 = lathe.kv_append %b0, %k, %v into @full layer 0
    %o = lathe.paged_attention %b1, %q from @full layer 0 scale 0.125 …
    ```
  }];
  let dependentDialects = ["::lathe::ir::LatheDialect"];
  let options = [Option<"dtype", "dtype", "std::string", "\"f16\"",
                        "How the cache stores keys and values: f16, bf16, f32 "
                        "or int8">];
}

def FormKernels : Pass<"form-kernels", "::mlir::ModuleOp"> {
  let summary = "The graph becomes kernels and launches";
  let description = [{
    Each function becomes a `kernel.program`. Linears become gemms that take
    the elementwise ops behind them as epilogues (gate and up of one
    feed-forward as a paired segment), norms and quantization become rowwise
    stages, rotary embedding and KV append one kernel, attention another. Equal
    kernels are made once.

    Where `head` ends in a gemm of q8_0 whose results are the logits as they are,
    a program `pick` beside it chooses tokens without computing all of them; its
    weights are the head rounded to q5_0 and what that is off by.

    Where it chooses a slower path, it remarks so at the op: what is left of
    phases that were disabled or did not match and runs as plain loops on the
    skeleton `contract` (attention without a KV cache, quantized weights with f32
    activations), linears that read one input in kernels of their own, a gate
    that cannot be paired, and elementwise ops and quantizations that no other
    kernel takes in.

    Before:
    ```mlir
    %n = lathe.rms_norm %x, @norm epsilon 1.0e-05
    %q = lathe.quantize_rows %n
    %y = lathe.linear %q, @w
    %z = lathe.add %x, %y
    ```
    After:
    ```mlir
    kernel.rowwise @k0 … kernel.gemm @k1 …
    kernel.launch @k0(%x, %norm, %q)
    kernel.launch @k1(%q, %w, %x, %z)
    ```
  }];
  let dependentDialects = ["::lathe::ir::KernelDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def SkipUnwantedRows : Pass<"skip-unwanted-rows", "::mlir::ModuleOp"> {
  let summary = "What only hidden states need runs for the wanted rows alone";
  let description = [{
    A prompt's rows are there for their keys and values; of most of them nobody
    reads the hidden state. Launches of `body` are marked `wanted` from its end
    backwards, as long as each row of their results depends on the same row of
    what they read and only wanted launches read those results. In the last
    layer that leaves what leads to its keys and values for all rows.

    Before:
    ```mlir
    kernel.launch @rope(%q, %k, %v, %kp, %vp, %qr)
    kernel.launch @attention(%qr, %kp, %vp, %partials, %a)
    kernel.launch @out(%a, %w, %x, %hidden)
    ```
    After:
    ```mlir
    kernel.launch @rope(%q, %k, %v, %kp, %vp, %qr)
    kernel.launch @attention(%qr, %kp, %vp, %partials, %a) wanted
    kernel.launch @out(%a, %w, %x, %hidden) wanted
    ```
  }];
  let dependentDialects = ["::lathe::ir::KernelDialect"];
  let statistics = [
    Statistic<"marked", "marked", "Number of launches for wanted rows">
  ];
}

def PackWeights : Pass<"pack-weights", "::mlir::ModuleOp"> {
  let summary = "Weights get the target's layout";
  let description = [{
    Every matrix that a kernel reads is wrapped in a `pack` recipe and its type
    says the layout; weights that nothing reads are removed.

    Before:
    ```mlir
    lathe.weight @w : tensor<576x576x!lathe.block<q4_1, rows>> = #lathe.source<…>
    ```
    After:
    ```mlir
    lathe.weight @w : tensor<576x576x!lathe.block<q4_1, r16>>
        = #lathe.recipe<"pack", {}, [#lathe.source<…>]>
    ```
  }];
  let dependentDialects = ["::lathe::ir::KernelDialect"];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "Buffers get arena slots, launches get what they wait for";
  let description = [{
    Buffers that are never alive together share a slot; a slot's size is the
    largest of its buffers', part by part. Each launch lists the earlier launches
    of its program that must be complete.

    Before:
    ```mlir
    %x = kernel.alloc #kernel.size<t = 2304, s = 0, c = 0, n = 0, e = 0>
    kernel.launch @k1(%q, %w, %x, %z)
    ```
    After:
    ```mlir
    %x = kernel.alloc #kernel.size<t = 2304, s = 0, c = 0, n = 0, e = 0> slot 1
    kernel.launch @k1(%q, %w, %x, %z) waits [0]
    ```
  }];
  let dependentDialects = ["::lathe::ir::KernelDialect"];
}

#endif // LATHE_PASSES_TD
