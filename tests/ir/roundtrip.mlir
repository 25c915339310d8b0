// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt --mlir-print-op-generic %s | lathe-opt | FileCheck %s

// Every op, type and attribute of both dialects.

// CHECK: module attributes {lathe.files = [#lathe.file<"m.gguf", 1000000, "7c43">], lathe.model = #lathe.model<architecture = "llama", name = "a name", vocab = 64, hidden = 64, layers = 1, positions = 128>, lathe.phase = "canonicalize"}
module attributes {lathe.phase = "canonicalize", lathe.model = #lathe.model<architecture = "llama", name = "a name", vocab = 64, hidden = 64, layers = 1, positions = 128>, lathe.files = [#lathe.file<"m.gguf", 1000000, "7c43">]} {

  // CHECK: lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 32, bytes = 2560>
  lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 32, bytes = 2560>
  // CHECK: lathe.weight @packed : tensor<64x64x!lathe.block<q4_1, r16>> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 32, bytes = 2560>]>
  lathe.weight @packed : tensor<64x64x!lathe.block<q4_1, r16>> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 32, bytes = 2560>]>
  // CHECK: lathe.weight @both : tensor<128x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {rows = 16 : i64}, [#lathe.source<file = 0, offset = 32, bytes = 2560>, #lathe.source<file = 0, offset = 32, bytes = 2560>]>
  lathe.weight @both : tensor<128x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {rows = 16}, [#lathe.source<file = 0, offset = 32, bytes = 2560>, #lathe.source<file = 0, offset = 32, bytes = 2560>]>
  // CHECK: lathe.weight @v : tensor<64xf32> = #lathe.recipe<"convert", {format = "f16"}, [#lathe.source<file = 0, offset = 0, bytes = 128>]>
  lathe.weight @v : tensor<64xf32> = #lathe.recipe<"convert", {format = "f16"}, [#lathe.source<file = 0, offset = 0, bytes = 128>]>
  // CHECK: lathe.weight @n : tensor<16xf32> = #lathe.source<file = 0, offset = 0, bytes = 64>
  lathe.weight @n : tensor<16xf32> = #lathe.source<file = 0, offset = 0, bytes = 64>
  // CHECK: lathe.weight @rope : tensor<128x8x2xf32> = #lathe.recipe<"rope_table", {base = 1.000000e+04 : f64}, []>
  lathe.weight @rope : tensor<128x8x2xf32> = #lathe.recipe<"rope_table", {base = 1.0e4}, []>

  // Every format.
  // CHECK: @f32 : tensor<1x256x!lathe.block<f32, rows>>
  lathe.weight @f32 : tensor<1x256x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 1024>
  // CHECK: @f16 : tensor<1x256x!lathe.block<f16, rows>>
  lathe.weight @f16 : tensor<1x256x!lathe.block<f16, rows>> = #lathe.source<file = 0, offset = 0, bytes = 512>
  // CHECK: @bf16 : tensor<1x256x!lathe.block<bf16, rows>>
  lathe.weight @bf16 : tensor<1x256x!lathe.block<bf16, rows>> = #lathe.source<file = 0, offset = 0, bytes = 512>
  // CHECK: @q4_0 : tensor<1x256x!lathe.block<q4_0, rows>>
  lathe.weight @q4_0 : tensor<1x256x!lathe.block<q4_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 144>
  // CHECK: @q5_0 : tensor<1x256x!lathe.block<q5_0, rows>>
  lathe.weight @q5_0 : tensor<1x256x!lathe.block<q5_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 176>
  // CHECK: @q5_1 : tensor<1x256x!lathe.block<q5_1, rows>>
  lathe.weight @q5_1 : tensor<1x256x!lathe.block<q5_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 192>
  // CHECK: @q8_0 : tensor<1x256x!lathe.block<q8_0, rows>>
  lathe.weight @q8_0 : tensor<1x256x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 272>
  // CHECK: @q2_k : tensor<1x256x!lathe.block<q2_k, rows>>
  lathe.weight @q2_k : tensor<1x256x!lathe.block<q2_k, rows>> = #lathe.source<file = 0, offset = 0, bytes = 84>
  // CHECK: @q3_k : tensor<1x256x!lathe.block<q3_k, rows>>
  lathe.weight @q3_k : tensor<1x256x!lathe.block<q3_k, rows>> = #lathe.source<file = 0, offset = 0, bytes = 110>
  // CHECK: @q4_k : tensor<1x256x!lathe.block<q4_k, rows>>
  lathe.weight @q4_k : tensor<1x256x!lathe.block<q4_k, rows>> = #lathe.source<file = 0, offset = 0, bytes = 144>
  // CHECK: @q5_k : tensor<1x256x!lathe.block<q5_k, rows>>
  lathe.weight @q5_k : tensor<1x256x!lathe.block<q5_k, rows>> = #lathe.source<file = 0, offset = 0, bytes = 176>
  // CHECK: @q6_k : tensor<1x256x!lathe.block<q6_k, rows>>
  lathe.weight @q6_k : tensor<1x256x!lathe.block<q6_k, rows>> = #lathe.source<file = 0, offset = 0, bytes = 210>
  // CHECK: @iq4_nl : tensor<1x256x!lathe.block<iq4_nl, rows>>
  lathe.weight @iq4_nl : tensor<1x256x!lathe.block<iq4_nl, rows>> = #lathe.source<file = 0, offset = 0, bytes = 144>
  // CHECK: @iq4_xs : tensor<1x256x!lathe.block<iq4_xs, rows>>
  lathe.weight @iq4_xs : tensor<1x256x!lathe.block<iq4_xs, rows>> = #lathe.source<file = 0, offset = 0, bytes = 136>

  // CHECK: lathe.kv_group @full id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(4096) k_offsets([0, 2048]) v_offsets([1024, 3072])
  lathe.kv_group @full id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(4096) k_offsets([0, 2048]) v_offsets([1024, 3072])
  // CHECK: lathe.kv_group @near id(1) kind(<window>) window(8) element(f32) kv_heads(2) head_dim(16) layers([1]) page_bytes(4096) k_offsets([0]) v_offsets([2048])
  lathe.kv_group @near id(1) kind(<window>) window(8) element(f32) kv_heads(2) head_dim(16) layers([1]) page_bytes(4096) k_offsets([0]) v_offsets([2048])
  // CHECK: lathe.kv_group @brain id(2) kind(<full>) window(0) element(bf16) kv_heads(2) head_dim(16) layers([3]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
  lathe.kv_group @brain id(2) kind(<full>) window(0) element(bf16) kv_heads(2) head_dim(16) layers([3]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
  // CHECK: lathe.kv_group @bytes id(3) kind(<full>) window(0) element(i8) kv_heads(2) head_dim(16) layers([4]) page_bytes(1280) k_offsets([0]) v_offsets([640])
  lathe.kv_group @bytes id(3) kind(<full>) window(0) element(i8) kv_heads(2) head_dim(16) layers([4]) page_bytes(1280) k_offsets([0]) v_offsets([640])

  // CHECK-LABEL: func.func @graph
  func.func @graph(%t: tensor<?xi32>, %s: tensor<4x?x?xf32>) -> tensor<?x64xf32> {
    // CHECK: %[[P:.*]] = lathe.positions %{{.*}} : tensor<?xi32>
    %p = lathe.positions %t : tensor<?xi32>
    // CHECK: %[[X:.*]] = lathe.embed %{{.*}}, @w : tensor<?xi32> -> tensor<?x64xf32>
    %x = lathe.embed %t, @w : tensor<?xi32> -> tensor<?x64xf32>
    // CHECK: lathe.linear %[[X]], @w : tensor<?x64xf32> -> tensor<?x64xf32>
    %l = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK: lathe.quantize_rows %[[X]] : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    %xq = lathe.quantize_rows %x : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    // CHECK: lathe.linear %{{.*}}, @w bias @v : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    %lb = lathe.linear %xq, @w bias @v : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    // CHECK: lathe.merged_linear %{{.*}}, [@w, @both] : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>, tensor<?x128xf32>
    %m0, %m1 = lathe.merged_linear %xq, [@w, @both] : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>, tensor<?x128xf32>
    // CHECK: lathe.merged_linear %{{.*}}, [@w, @w] biases [@v, unit]
    %m2, %m3 = lathe.merged_linear %x, [@w, @w] biases [@v, unit] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>
    // CHECK: lathe.add %{{.*}}, %{{.*}} : tensor<?x64xf32>
    %a = lathe.add %l, %lb : tensor<?x64xf32>
    // CHECK: lathe.mul
    %mul = lathe.mul %a, %m0 : tensor<?x64xf32>
    // CHECK: lathe.silu %{{.*}} : tensor<?x64xf32>
    %silu = lathe.silu %mul : tensor<?x64xf32>
    // CHECK: lathe.gelu
    %gelu = lathe.gelu %silu : tensor<?x64xf32>
    // CHECK: lathe.scale %{{.*}} by 1.250000e-01 : tensor<?x64xf32>
    %scale = lathe.scale %gelu by 0.125 : tensor<?x64xf32>
    // CHECK: lathe.softcap %{{.*}} cap 3.000000e+01 : tensor<?x64xf32>
    %cap = lathe.softcap %scale cap 30.0 : tensor<?x64xf32>
    // CHECK: lathe.rms_norm %{{.*}}, @v epsilon 9.99999974E-6 : tensor<?x64xf32>
    %norm = lathe.rms_norm %cap, @v epsilon 1.0e-5 : tensor<?x64xf32>
    // CHECK: lathe.reshape %{{.*}} : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %h = lathe.reshape %norm : tensor<?x64xf32> -> tensor<?x4x16xf32>
    // CHECK: lathe.rms_norm %{{.*}}, @n epsilon 0.000000e+00 : tensor<?x4x16xf32>
    %hn = lathe.rms_norm %h, @n epsilon 0.0 : tensor<?x4x16xf32>
    // CHECK: lathe.rope %{{.*}}, %[[P]], @rope style <adjacent> : tensor<?x4x16xf32>, tensor<?xi32>
    %r0 = lathe.rope %hn, %p, @rope style <adjacent> : tensor<?x4x16xf32>, tensor<?xi32>
    // CHECK: lathe.rope %{{.*}}, %[[P]], @rope style <halves>
    %r1 = lathe.rope %r0, %p, @rope style <halves> : tensor<?x4x16xf32>, tensor<?xi32>
    // CHECK: lathe.repeat_heads %{{.*}} times 3 : tensor<?x4x16xf32> -> tensor<?x12x16xf32>
    %rep = lathe.repeat_heads %r1 times 3 : tensor<?x4x16xf32> -> tensor<?x12x16xf32>
    // CHECK: lathe.transpose %{{.*}} : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %tr = lathe.transpose %r1 : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    // CHECK: lathe.matmul %{{.*}}, %{{.*}} transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %qk = lathe.matmul %tr, %tr transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    // CHECK: lathe.mask %{{.*}}, %[[P]] window 8 : tensor<4x?x?xf32>, tensor<?xi32>
    %mask = lathe.mask %qk, %p window 8 : tensor<4x?x?xf32>, tensor<?xi32>
    // CHECK: lathe.softmax %{{.*}} : tensor<4x?x?xf32>
    %soft = lathe.softmax %mask : tensor<4x?x?xf32>
    // CHECK: lathe.matmul %{{.*}}, %{{.*}} : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %pv = lathe.matmul %soft, %tr : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    // CHECK: lathe.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[P]] scale 2.500000e-01 window 8 softcap 5.000000e+01 : tensor<?x12x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32> -> tensor<?x12x16xf32>
    %att = lathe.attention %rep, %r1, %r1, %p scale 0.25 window 8 softcap 50.0 : tensor<?x12x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32> -> tensor<?x12x16xf32>
    return %norm : tensor<?x64xf32>
  }

  // CHECK-LABEL: func.func @step
  // CHECK-SAME: !lathe.batch
  func.func @step(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %b: !lathe.batch) -> tensor<?x4x16xf32> {
    // CHECK: %[[B:.*]] = lathe.kv_append %{{.*}}, %{{.*}}, %{{.*}} into @full layer 2 : tensor<?x2x16xf32>, tensor<?x2x16xf32>
    %b1 = lathe.kv_append %b, %k, %k into @full layer 2 : tensor<?x2x16xf32>, tensor<?x2x16xf32>
    // CHECK: lathe.paged_attention %[[B]], %{{.*}} from @full layer 2 scale 2.500000e-01 window 0 softcap 0.000000e+00 : tensor<?x4x16xf32>
    %o = lathe.paged_attention %b1, %q from @full layer 2 scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>
    return %o : tensor<?x4x16xf32>
  }

  // CHECK: kernel.embed @k0 vocab(64) k(64) weight(!lathe.block<q4_1, r16>)
  kernel.embed @k0 vocab(64) k(64) weight(!lathe.block<q4_1, r16>) {
  ^bb0(%x: f32):
    // CHECK: kernel.yield %{{.*}} : f32
    kernel.yield %x : f32
  }
  // CHECK: kernel.rowwise @k1 k(64) rows(<R>) replicated(true) stages([#kernel.stage<rms = true, epsilon = 9.99999974E-6 : f32, sides = [column], stores = [q8]>, #kernel.stage<rms = false, epsilon = 0.000000e+00 : f32, sides = [element, row], stores = [f32, q8]>])
  kernel.rowwise @k1 k(64) rows(<R>) replicated(true) stages([#kernel.stage<rms = true, epsilon = 1.0e-05 : f32, sides = [column], stores = [q8]>, #kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [element, row], stores = [f32, q8]>]) {
  ^bb0(%x: f32, %w: f32):
    %y = arith.mulf %x, %w : f32
    kernel.yield %y : f32
  }, {
  ^bb0(%x: f32, %e: f32, %r: f32):
    %c = arith.constant 1.0 : f32
    %0 = arith.addf %x, %e : f32
    %1 = arith.subf %0, %r : f32
    %2 = arith.divf %1, %c : f32
    %3 = arith.negf %2 : f32
    %4 = math.fma %3, %c, %c : f32
    %5 = math.exp %4 : f32
    %6 = math.tanh %5 : f32
    %7 = math.absf %6 : f32
    %8 = math.sqrt %7 : f32
    kernel.yield %8 : f32
  }
  // CHECK: kernel.gemm @k2 k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q4_1, r16>, paired = false, store = f32, sides = [element]>, #kernel.segment<n = 32, weight = <q4_1, r16>, paired = true, store = q8, sides = []>])
  kernel.gemm @k2 k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q4_1, r16>, paired = false, store = f32, sides = [element]>, #kernel.segment<n = 32, weight = <q4_1, r16>, paired = true, store = q8, sides = []>]) {
  ^bb0(%acc: f32, %residual: f32):
    %y = arith.addf %acc, %residual : f32
    kernel.yield %y : f32
  }, {
  ^bb0(%gate: f32, %up: f32):
    %y = arith.mulf %gate, %up : f32
    kernel.yield %y : f32
  }
  // CHECK: kernel.gemm @k3 k(64) rows(<R>) input(<f32>) segments([#kernel.segment<n = 64, weight = <bf16, r16>
  kernel.gemm @k3 k(64) rows(<R>) input(<f32>) segments([#kernel.segment<n = 64, weight = <bf16, r16>, paired = false, store = f32, sides = []>]) {
  ^bb0(%acc: f32):
    kernel.yield %acc : f32
  }
  // CHECK: kernel.pick @k13 k(64) n(100) weight(!lathe.block<q8_0, r16>) coarse(!lathe.block<q5_0, r16>)
  kernel.pick @k13 k(64) n(100) weight(!lathe.block<q8_0, r16>) coarse(!lathe.block<q5_0, r16>)
  // CHECK: kernel.rope_append @k4 group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(true) epsilon(9.99999974E-6) q_scale(2.500000e-01) element(f16) own_chunk(128)
  kernel.rope_append @k4 group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(true) epsilon(1.0e-5) q_scale(0.25) element(f16) own_chunk(128)
  // CHECK: kernel.attention @k5 group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.000000e+00) element(f16) store(<f32>)
  kernel.attention @k5 group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(f16) store(<f32>)
  // CHECK: kernel.rope_append @k14 {{.*}} element(i8) own_chunk(128)
  kernel.rope_append @k14 group(3) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(true) epsilon(1.0e-5) q_scale(0.25) element(i8) own_chunk(128)
  // CHECK: kernel.attention @k15 {{.*}} element(i8) store(<f32>)
  kernel.attention @k15 group(3) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(i8) store(<f32>)

  // CHECK: kernel.contract @c0 op(<linear>) dims([64, 64]) value(0.000000e+00) window(0) softcap(0.000000e+00) style(<adjacent>) weight(!lathe.block<q4_1, r16>) bias(true)
  kernel.contract @c0 op(<linear>) dims([64, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) weight(!lathe.block<q4_1, r16>) bias(true)
  // CHECK: kernel.contract @c1 op(<combine>) dims([-1, 1, 64])
  kernel.contract @c1 op(<combine>) dims([-1, 1, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    kernel.yield %s : f32
  }
  // CHECK: op(<matmul>) dims([4, -1, -1, 16])
  kernel.contract @matmul_k op(<matmul>) dims([4, -1, -1, 16]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<matmul_transposed>) dims([4, -1, 16, -1])
  kernel.contract @matmul_transposed_k op(<matmul_transposed>) dims([4, -1, 16, -1]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<softmax>) dims([4, -1, -1])
  kernel.contract @softmax_k op(<softmax>) dims([4, -1, -1]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<mask>) dims([4, -1, -1])
  kernel.contract @mask_k op(<mask>) dims([4, -1, -1]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<transpose>) dims([-1, 4, 16])
  kernel.contract @transpose_k op(<transpose>) dims([-1, 4, 16]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<repeat_heads>) dims([-1, 2, 16, 2])
  kernel.contract @repeat_heads_k op(<repeat_heads>) dims([-1, 2, 16, 2]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<norm>) dims([-1, 1, 64])
  kernel.contract @norm_k op(<norm>) dims([-1, 1, 64]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<rope>) dims([-1, 4, 16, 8])
  kernel.contract @rope_k op(<rope>) dims([-1, 4, 16, 8]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<attention>) dims([4, 2, 16])
  kernel.contract @attention_k op(<attention>) dims([4, 2, 16]) value(1.0) window(0) softcap(0.0) style(<halves>) bias(false)
  // CHECK: op(<map>)
  kernel.contract @map_k op(<map>) dims([-1, 1, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false) {
  ^bb0(%x: f32):
    kernel.yield %x : f32
  }

  // CHECK: kernel.program @program
  kernel.program @program {
    // CHECK: %[[A:.*]] = kernel.alloc <t = 256, s = 1, c = 2, n = 1024, e = 4> slot 2
    %a = kernel.alloc <t = 256, s = 1, c = 2, n = 1024, e = 4> slot 2
    // CHECK: %[[U:.*]] = kernel.alloc <t = 64, s = 0, c = 0, n = 0, e = 0>{{$}}
    %u = kernel.alloc <t = 64, s = 0, c = 0, n = 0, e = 0>
    // CHECK: %[[W:.*]] = kernel.weight @packed
    %w = kernel.weight @packed
    // CHECK: %[[K:.*]] = kernel.kv_pool group 0 offset 1024
    %k = kernel.kv_pool group 0 offset 1024
    // CHECK: kernel.step_buffer <hidden>
    %h = kernel.step_buffer <hidden>
    // CHECK: kernel.step_buffer <head_input>
    %i = kernel.step_buffer <head_input>
    // CHECK: kernel.step_buffer <logits>
    %l = kernel.step_buffer <logits>
    // CHECK: kernel.launch @k0(%[[W]], %[[A]]) waits []
    kernel.launch @k0(%w, %a) waits []
    // CHECK: kernel.launch @k5(%[[A]], %[[K]], %[[K]], %[[U]], %{{.*}}) wanted waits [0]
    kernel.launch @k5(%a, %k, %k, %u, %h) wanted waits [0]
    // CHECK: kernel.launch @k0(%[[W]], %{{.*}}){{$}}
    kernel.launch @k0(%w, %l)
  }
}
