// RUN: lathe-opt --pack-weights %s | FileCheck %s

// What kernels read gets the target's layout; vectors stay; the rest goes.
// CHECK: lathe.weight @w : tensor<64x64x!lathe.block<q4_1, r16>> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>
// CHECK: lathe.weight @n : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
// CHECK-NOT: @unused
// CHECK: weight = <q4_1, r16>
lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
lathe.weight @n : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
lathe.weight @unused : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
kernel.gemm @k0 k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q4_1, rows>, paired = false, store = f32, sides = [column]>]) {
^bb0(%x: f32, %s: f32):
  %y = arith.addf %x, %s : f32
  kernel.yield %y : f32
}
kernel.program @body {
  %x = kernel.alloc <t = 88, s = 0, c = 0, n = 0, e = 0>
  %w = kernel.weight @w
  %n = kernel.weight @n
  %y = kernel.step_buffer <hidden>
  kernel.launch @k0(%x, %w, %n, %y)
}
