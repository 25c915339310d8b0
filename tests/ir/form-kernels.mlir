// RUN: lathe-opt --canonicalize --fuse-attention --merge-linears --quantize-activations --kv-cache-layout --form-kernels %s | FileCheck %s
// RUN: lathe-opt --canonicalize --fuse-attention --quantize-activations --kv-cache-layout --form-kernels %s | FileCheck %s --check-prefix=SINGLE

// A llama block: norm and quantization are one rowwise kernel made once; gate
// and up a paired segment with SiLU, the product and q8 in its epilogue; the
// residual is added where it is made.
// CHECK: lathe.weight @embd.coarse : tensor<64x64x!lathe.block<q5_0, rows>> = #lathe.recipe<"coarse", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>
// CHECK: lathe.weight @embd.coarse_errors : tensor<64xf32> = #lathe.recipe<"coarse_errors", {k = 64 : i64}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>
// CHECK: lathe.weight @"wg+wu" : tensor<192x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {rows = 16 : i64}
// CHECK: kernel.embed @k0 vocab(64) k(64)
// CHECK: kernel.rowwise @k1 k(64) rows(<T>) replicated(true) stages([#kernel.stage<rms = true, epsilon = 9.99999974E-6 : f32, sides = [column], stores = [q8]>])
// CHECK: kernel.gemm @k2 k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, {{.*}}>, #kernel.segment<n = 32, {{.*}}>, #kernel.segment<n = 32, {{.*}}>])
// CHECK: kernel.rope_append @k3 group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<adjacent>) qk_norm(false) epsilon(0.000000e+00) q_scale(2.500000e-01)
// CHECK: kernel.attention @k4 {{.*}} store(<f32>)
// CHECK: kernel.rowwise @k5 k(64) {{.*}} stages([#kernel.stage<rms = false, {{.*}}, sides = [], stores = [q8]>])
// CHECK: kernel.gemm @k6 {{.*}} sides = [element]
// CHECK: arith.addf
// CHECK: kernel.gemm @k7 k(64) {{.*}} paired = true, store = q8, sides = []
// CHECK: arith.negf
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK: kernel.gemm @k8 k(96)
// CHECK: kernel.program @body
// CHECK-COUNT-10: kernel.launch
// CHECK: kernel.pick @k11 k(64) n(64) weight(!lathe.block<q8_0, rows>) coarse(!lathe.block<q5_0, rows>)
// CHECK: kernel.program @head
// CHECK: %[[L:.*]] = kernel.step_buffer <logits>
// CHECK: kernel.launch @k10(%{{.*}}, %{{.*}}, %[[L]])

// The logits are the q8_0 gemm's as they are, so a token can be picked without
// them: the same launches, but the last.
// CHECK: kernel.program @pick
// CHECK: %[[BOUNDS:.*]] = kernel.step_buffer <logits>
// CHECK: %[[COARSE:.*]] = kernel.weight @embd.coarse
// CHECK: %[[ERRORS:.*]] = kernel.weight @embd.coarse_errors
// CHECK: %[[STATE:.*]] = kernel.alloc <t = 0, s = 0, c = 0, n = 0, e = 34816>
// CHECK: %[[PICKED:.*]] = kernel.step_buffer <picked>
// CHECK: kernel.launch @k11(%{{.*}}, %{{.*}}, %[[COARSE]], %[[ERRORS]], %[[BOUNDS]], %[[STATE]], %[[PICKED]])

// Without merge-linears gate and up are gemms of their own, and the product
// with the gate is in up's epilogue.
// SINGLE: kernel.gemm {{.*}}<n = 96, {{.*}} paired = false, store = f32, sides = []
// SINGLE: math.exp
// SINGLE: kernel.gemm {{.*}}<n = 96, {{.*}} paired = false, store = q8, sides = [element]
// SINGLE-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[GATE:.*]]: f32):
// SINGLE-NEXT: arith.mulf %[[GATE]], %[[ACC]]
// SINGLE: kernel.program @body
// SINGLE-COUNT-13: kernel.launch

module attributes {lathe.form = "sequence", lathe.model = #lathe.model<architecture = "llama", name = "t", vocab = 64, hidden = 64, layers = 1, positions = 128>, lathe.files = [#lathe.file<"m.gguf", 1000000, "00">]} {
  lathe.weight @embd : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
  lathe.weight @wq : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
  lathe.weight @wk : tensor<32x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 1280>
  lathe.weight @wg : tensor<96x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 3840>
  lathe.weight @wu : tensor<96x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 3840>
  lathe.weight @wd : tensor<64x96x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 3840>
  lathe.weight @norm : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
  lathe.weight @rope : tensor<128x8x2xf32> = #lathe.recipe<"rope_table", {theta = 1.0e4}, []>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %pos = lathe.positions %tokens : tensor<?xi32>
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %n = lathe.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %q = lathe.linear %n, @wq : tensor<?x64xf32> -> tensor<?x64xf32>
    %k = lathe.linear %n, @wk : tensor<?x64xf32> -> tensor<?x32xf32>
    %v = lathe.linear %n, @wk : tensor<?x64xf32> -> tensor<?x32xf32>
    %qh = lathe.reshape %q : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %kh = lathe.reshape %k : tensor<?x32xf32> -> tensor<?x2x16xf32>
    %vh = lathe.reshape %v : tensor<?x32xf32> -> tensor<?x2x16xf32>
    %qr = lathe.rope %qh, %pos, @rope style <adjacent> : tensor<?x4x16xf32>, tensor<?xi32>
    %kr = lathe.rope %kh, %pos, @rope style <adjacent> : tensor<?x2x16xf32>, tensor<?xi32>
    %k4 = lathe.repeat_heads %kr times 2 : tensor<?x2x16xf32> -> tensor<?x4x16xf32>
    %v4 = lathe.repeat_heads %vh times 2 : tensor<?x2x16xf32> -> tensor<?x4x16xf32>
    %qt = lathe.transpose %qr : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %kt = lathe.transpose %k4 : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %vt = lathe.transpose %v4 : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %s = lathe.matmul %qt, %kt transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %ss = lathe.scale %s by 0.25 : tensor<4x?x?xf32>
    %m = lathe.mask %ss, %pos window 0 : tensor<4x?x?xf32>, tensor<?xi32>
    %p = lathe.softmax %m : tensor<4x?x?xf32>
    %o = lathe.matmul %p, %vt : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %ot = lathe.transpose %o : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
    %of = lathe.reshape %ot : tensor<?x4x16xf32> -> tensor<?x64xf32>
    %oo = lathe.linear %of, @wq : tensor<?x64xf32> -> tensor<?x64xf32>
    %h = lathe.add %x, %oo : tensor<?x64xf32>
    %n2 = lathe.rms_norm %h, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %g = lathe.linear %n2, @wg : tensor<?x64xf32> -> tensor<?x96xf32>
    %u = lathe.linear %n2, @wu : tensor<?x64xf32> -> tensor<?x96xf32>
    %sg = lathe.silu %g : tensor<?x96xf32>
    %gu = lathe.mul %sg, %u : tensor<?x96xf32>
    %d = lathe.linear %gu, @wd : tensor<?x96xf32> -> tensor<?x64xf32>
    %y = lathe.add %h, %d : tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %n = lathe.rms_norm %h, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %l = lathe.linear %n, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}
