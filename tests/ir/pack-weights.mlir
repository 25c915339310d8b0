// RUN: lathe-opt --pack-weights %s | FileCheck %s

// What kernels read gets the target's layout; vectors stay; the rest goes.
// CHECK: lathe.weight @w : tensor<64x64x!lathe.block<q4_1, r16>> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>
// CHECK: lathe.weight @n : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
// CHECK-NOT: @unused
// CHECK: lathe.weight @h : tensor<64x64x!lathe.block<q8_0, r16>> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>
// CHECK: lathe.weight @c : tensor<64x64x!lathe.block<q5_0, r16>> = #lathe.recipe<"pack", {}, [#lathe.recipe<"coarse", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>]>
// CHECK: weight = <q4_1, r16>
// CHECK: kernel.pick @k1 k(64) n(64) weight(!lathe.block<q8_0, r16>) coarse(!lathe.block<q5_0, r16>)
lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
lathe.weight @n : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
lathe.weight @unused : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
lathe.weight @h : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
lathe.weight @c : tensor<64x64x!lathe.block<q5_0, rows>> = #lathe.recipe<"coarse", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>
kernel.gemm @k0 k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q4_1, rows>, paired = false, store = f32, sides = [column]>]) {
^bb0(%x: f32, %s: f32):
  %y = arith.addf %x, %s : f32
  kernel.yield %y : f32
}
kernel.pick @k1 k(64) n(64) weight(!lathe.block<q8_0, rows>) coarse(!lathe.block<q5_0, rows>)
kernel.program @body {
  %x = kernel.alloc <t = 88, s = 0, c = 0, n = 0, e = 0>
  %w = kernel.weight @w
  %n = kernel.weight @n
  %y = kernel.step_buffer <hidden>
  kernel.launch @k0(%x, %w, %n, %y)
}
kernel.program @pick {
  %x = kernel.alloc <t = 0, s = 0, c = 0, n = 0, e = 2816>
  %h = kernel.weight @h
  %c = kernel.weight @c
  %e = kernel.weight @n
  %l = kernel.step_buffer <logits>
  %s = kernel.alloc <t = 0, s = 0, c = 0, n = 0, e = 34816>
  %p = kernel.step_buffer <picked>
  kernel.launch @k1(%x, %h, %c, %e, %l, %s, %p)
}
