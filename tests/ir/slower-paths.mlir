// RUN: lathe-opt --form-kernels %s --split-input-file --verify-diagnostics -o %t

// What form-kernels says where it chooses a slower path: a remark at the op. (What
// other passes say is in their own files.) The functions hold nothing else that
// is slow, so that each remark stands alone.

// Attention that is not fused.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %pos = lathe.positions %tokens : tensor<?xi32>
    %q = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %t = lathe.transpose %q : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %s = lathe.matmul %t, %t transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
    %g = lathe.gelu %s : tensor<4x?x?xf32>
    %m = lathe.mask %g, %pos window 0 : tensor<4x?x?xf32>, tensor<?xi32>
    // expected-remark @below {{attention is not fused, so there is no KV cache: lathe.transpose, lathe.matmul, lathe.gelu, lathe.mask, lathe.softmax run as plain loops over the whole sequence at each step; fuse-attention and kv-cache-layout would avoid it}}
    %p = lathe.softmax %m : tensor<4x?x?xf32>
    %o = lathe.matmul %p, %t : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
    %r = lathe.transpose %o : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
    %f = lathe.reshape %r : tensor<?x4x16xf32> -> tensor<?x64xf32>
    return %f : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Fused, but over the whole sequence.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %pos = lathe.positions %tokens : tensor<?xi32>
    %q = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x4x16xf32>
    // expected-remark @below {{there is no KV cache: lathe.attention runs as plain loops over the whole sequence at each step; kv-cache-layout would avoid it}}
    %o = lathe.attention %q, %q, %q, %pos scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
    %f = lathe.reshape %o : tensor<?x4x16xf32> -> tensor<?x64xf32>
    return %f : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// What only a whole sequence has, in a step.
module attributes {lathe.form = "step"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %q = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x4x16xf32>
    // expected-remark @below {{lathe.transpose runs as plain loops: no kernel takes it in}}
    %t = lathe.transpose %q : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
    %n = lathe.linear %x, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %n : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Quantized weights without quantized activations. What follows is told of with
// them.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    // expected-remark @below {{quantized weights are multiplied by f32 activations in plain loops; quantize-activations would make the activations int8 blocks}}
    %y = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = lathe.add %x, %y : tensor<?x64xf32>
    return %z : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Two kernels for one input.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @w : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %y = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
    // expected-remark @below {{lathe.linear is a kernel of its own, though another reads the same input; merge-linears would make them one}}
    %z = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
    %a = lathe.add %y, %z : tensor<?x64xf32>
    return %a : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// A gate and its product of weights in two formats.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @norm : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
  lathe.weight @g : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
  lathe.weight @u : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %n = lathe.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %q = lathe.quantize_rows %n : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    
    %g, %u = lathe.merged_linear %q, [@g, @u] : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>, tensor<?x64xf32>
    %s = lathe.silu %g : tensor<?x64xf32>
    // expected-remark @below {{lathe.mul is a kernel of its own, not part of the linears that it combines, because their weights have different formats, q4_1 and q8_0}}
    %m = lathe.mul %s, %u : tensor<?x64xf32>
    return %m : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// A gate and its product of rows that no group of 16 divides.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @norm : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
  lathe.weight @g : tensor<24x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 6144>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x24xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %n = lathe.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %g, %u = lathe.merged_linear %n, [@g, @g] : tensor<?x64xf32> -> tensor<?x24xf32>, tensor<?x24xf32>
    %s = lathe.silu %g : tensor<?x24xf32>
    // expected-remark @below {{because their 24 rows are no multiple of 16}}
    %m = lathe.mul %s, %u : tensor<?x24xf32>
    return %m : tensor<?x24xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// A product of three.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @norm : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
  lathe.weight @g : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %n = lathe.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32>
    %a, %b, %c = lathe.merged_linear %n, [@g, @g, @g] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %s = lathe.mul %a, %b : tensor<?x64xf32>
    // expected-remark @below {{lathe.mul is a kernel of its own, because one of its inputs is not stored yet where another is made}}
    %m = lathe.mul %s, %c : tensor<?x64xf32>
    return %m : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Values that are quantized by a kernel of their own: an embedding, a value with
// other readers, and what the function is given.
module attributes {lathe.form = "sequence"} {
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
  func.func @body(%tokens: tensor<?xi32>) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    // expected-remark @below {{lathe.quantize_rows is a kernel of its own, because the kernel of lathe.embed does not take it in}}
    %q = lathe.quantize_rows %x : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    %y = lathe.linear %q, @w : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    // expected-remark @below {{lathe.quantize_rows is a kernel of its own, because others read its input too; as the only reader it would be part of the kernel that makes it}}
    %r = lathe.quantize_rows %y : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    %z = lathe.linear %r, @w : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    %a = lathe.add %y, %z : tensor<?x64xf32>
    return %a : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    // expected-remark @below {{lathe.quantize_rows is a kernel of its own, because its input comes from outside of the function}}
    %q = lathe.quantize_rows %h : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    %l = lathe.linear %q, @w : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Attention stores int8 blocks only where they end with a head.
module attributes {lathe.form = "step"} {
  lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(4) head_dim(16) layers([0]) page_bytes(4096) k_offsets([0]) v_offsets([2048])
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
  func.func @body(%tokens: tensor<?xi32>, %batch: !lathe.batch) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %a, %b, %c = lathe.merged_linear %x, [@embd, @embd, @embd] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %qh = lathe.reshape %a : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %kh = lathe.reshape %b : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %vh = lathe.reshape %c : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %b1 = lathe.kv_append %batch, %kh, %vh into @g layer 0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
    %o = lathe.paged_attention %b1, %qh from @g layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>
    %f = lathe.reshape %o : tensor<?x4x16xf32> -> tensor<?x64xf32>
    
    // expected-remark @below {{lathe.quantize_rows is a kernel of its own, because attention heads of 16 values are no whole blocks of 32}}
    %q = lathe.quantize_rows %f : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
    %y = lathe.linear %q, @w : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}

// -----

// Elementwise ops that no kernel takes in.
module attributes {lathe.form = "step"} {
  lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(4) head_dim(16) layers([0]) page_bytes(4096) k_offsets([0]) v_offsets([2048])
  lathe.weight @embd : tensor<64x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 16384>
  func.func @body(%tokens: tensor<?xi32>, %batch: !lathe.batch) -> tensor<?x64xf32> {
    %x = lathe.embed %tokens, @embd : tensor<?xi32> -> tensor<?x64xf32>
    %a, %b, %c = lathe.merged_linear %x, [@embd, @embd, @embd] : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %qh = lathe.reshape %a : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %kh = lathe.reshape %b : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %vh = lathe.reshape %c : tensor<?x64xf32> -> tensor<?x4x16xf32>
    %b1 = lathe.kv_append %batch, %kh, %vh into @g layer 0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
    %o = lathe.paged_attention %b1, %qh from @g layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>
    %f = lathe.reshape %o : tensor<?x4x16xf32> -> tensor<?x64xf32>
    
    // expected-remark @below {{lathe.silu is a kernel of its own, because the kernel of lathe.paged_attention does not take it in}}
    %y = lathe.silu %f : tensor<?x64xf32>
    %z = lathe.linear %y, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    // expected-remark @below {{lathe.silu is a kernel of its own, because others read its input too; as the only reader it would be part of the kernel that makes it}}
    %s = lathe.silu %z : tensor<?x64xf32>
    %t = lathe.mul %s, %z : tensor<?x64xf32>
    return %t : tensor<?x64xf32>
  }
  func.func @head(%h: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %l = lathe.linear %h, @embd : tensor<?x64xf32> -> tensor<?x64xf32>
    return %l : tensor<?x64xf32>
  }
}
