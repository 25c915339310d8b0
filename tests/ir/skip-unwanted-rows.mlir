// RUN: lathe-opt --skip-unwanted-rows %s | FileCheck %s

kernel.rowwise @copy k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.rowwise @add k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [element], stores = [f32]>]) {
^bb0(%x: f32, %s: f32):
  %y = arith.addf %x, %s : f32
  kernel.yield %y : f32
}
kernel.rowwise @head_copy k(64) rows(<R>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.rope_append @rope group(0) heads(4) kv_heads(4) head_dim(16) rope_pairs(0) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(f16) own_chunk(0)
kernel.attention @attention group(0) heads(4) kv_heads(4) head_dim(16) chunk(128) window(0) softcap(0.0) element(f16) store(<f32>)

// All rows for what leads to keys and values: %x is read by a wanted launch,
// but by @rope, too. Behind that, wanted rows.
// CHECK-LABEL: kernel.program @body
// CHECK: kernel.launch @copy(%{{.*}}, %[[X:.*]]){{$}}
// CHECK: kernel.launch @rope(%[[X]], {{.*}}){{$}}
// CHECK: kernel.launch @attention({{.*}}) wanted
// CHECK: kernel.launch @add({{.*}}) wanted
// CHECK: kernel.launch @copy({{.*}}) wanted
kernel.program @body {
  %in = kernel.step_buffer <head_input>
  %out = kernel.step_buffer <hidden>
  %kp = kernel.kv_pool group 0 offset 0
  %vp = kernel.kv_pool group 0 offset 2048
  %x = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %q = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %p = kernel.alloc <t = 0, s = 0, c = 288, n = 0, e = 0>
  %a = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  %b = kernel.alloc <t = 256, s = 0, c = 0, n = 0, e = 0>
  kernel.launch @copy(%in, %x)
  kernel.launch @rope(%x, %x, %x, %kp, %vp, %q)
  kernel.launch @attention(%q, %kp, %vp, %p, %a)
  kernel.launch @add(%a, %x, %b)
  kernel.launch @copy(%b, %out)
}

// The head's rows are wanted ones already.
// CHECK-LABEL: kernel.program @head
// CHECK-NOT: wanted
kernel.program @head {
  %in = kernel.step_buffer <head_input>
  %out = kernel.step_buffer <logits>
  kernel.launch @head_copy(%in, %out)
}
