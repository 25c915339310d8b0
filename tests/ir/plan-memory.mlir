// RUN: lathe-opt --plan-memory %s | FileCheck %s

kernel.rowwise @copy k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.rowwise @add k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [element], stores = [f32]>]) {
^bb0(%x: f32, %s: f32):
  %y = arith.addf %x, %s : f32
  kernel.yield %y : f32
}
// %b is dead when %d is made: they share a slot, and the launch that writes %d
// waits for the one that read %b. Waits that others imply are left out.
// CHECK-LABEL: kernel.program @body
// CHECK: %[[A:.*]] = kernel.alloc {{.*}} slot 0
// CHECK: %[[B:.*]] = kernel.alloc {{.*}} slot 1
// CHECK: %[[C:.*]] = kernel.alloc {{.*}} slot 2
// CHECK: %[[D:.*]] = kernel.alloc {{.*}} slot 1
// CHECK: kernel.launch @copy(%{{.*}}, %[[A]]) waits []
// CHECK: kernel.launch @copy(%[[A]], %[[B]]) waits [0]
// CHECK: kernel.launch @add(%[[B]], %[[A]], %[[C]]) waits [1]
// CHECK: kernel.launch @copy(%[[C]], %[[D]]) waits [2]
// CHECK: kernel.launch @add(%[[D]], %[[A]], %{{.*}}) waits [3]
kernel.program @body {
  %in = kernel.step_buffer <head_input>
  %out = kernel.step_buffer <hidden>
  %a = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %b = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %c = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %d = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  kernel.launch @copy(%in, %a)
  kernel.launch @copy(%a, %b)
  kernel.launch @add(%b, %a, %c)
  kernel.launch @copy(%c, %d)
  kernel.launch @add(%d, %a, %out)
}
