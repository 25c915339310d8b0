// RUN: lathe-opt --fuse-attention --canonicalize %s | FileCheck %s
// RUN: lathe-opt --fuse-attention %s --verify-diagnostics -o %t

// Grouped-query attention with a window and a soft-cap becomes one op.
// CHECK-LABEL: func.func @gqa
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x16xf32>, %[[K:.*]]: tensor<?x2x16xf32>, %[[V:.*]]: tensor<?x2x16xf32>, %[[P:.*]]: tensor<?xi32>)
// CHECK-NEXT: %[[O:.*]] = lathe.attention %[[Q]], %[[K]], %[[V]], %[[P]] scale 2.500000e-01 window 8 softcap 5.000000e+01
// CHECK-NEXT: return %[[O]]
func.func @gqa(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>, %pos: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %k4 = lathe.repeat_heads %k times 2 : tensor<?x2x16xf32> -> tensor<?x4x16xf32>
  %v4 = lathe.repeat_heads %v times 2 : tensor<?x2x16xf32> -> tensor<?x4x16xf32>
  %qt = lathe.transpose %q : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
  %kt = lathe.transpose %k4 : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
  %vt = lathe.transpose %v4 : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
  %s = lathe.matmul %qt, %kt transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
  %c = lathe.scale %s by 0.25 : tensor<4x?x?xf32>
  %b = lathe.softcap %c cap 50.0 : tensor<4x?x?xf32>
  %m = lathe.mask %b, %pos window 8 : tensor<4x?x?xf32>, tensor<?xi32>
  %p = lathe.softmax %m : tensor<4x?x?xf32>
  %o = lathe.matmul %p, %vt : tensor<4x?x?xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
  %r = lathe.transpose %o : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
  return %r : tensor<?x4x16xf32>
}

// Plain multi-head attention, no scale op: scale 1.
// CHECK-LABEL: func.func @mha
// CHECK: lathe.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 window 0 softcap 0.000000e+00
func.func @mha(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %pos: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %qt = lathe.transpose %q : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %kt = lathe.transpose %k : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %vt = lathe.transpose %v : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %s = lathe.matmul %qt, %kt transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = lathe.mask %s, %pos window 0 : tensor<2x?x?xf32>, tensor<?xi32>
  %p = lathe.softmax %m : tensor<2x?x?xf32>
  %o = lathe.matmul %p, %vt : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %r = lathe.transpose %o : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  return %r : tensor<?x2x8xf32>
}

// Keys and values repeated differently are no attention.
// CHECK-LABEL: func.func @odd
// CHECK-NOT: lathe.attention
// CHECK: lathe.softmax
func.func @odd(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %pos: tensor<?xi32>) -> tensor<?x4x8xf32> {
  %k4 = lathe.repeat_heads %k times 2 : tensor<?x2x8xf32> -> tensor<?x4x8xf32>
  %qt = lathe.transpose %q : tensor<?x4x8xf32> -> tensor<4x?x8xf32>
  %kt = lathe.transpose %k4 : tensor<?x4x8xf32> -> tensor<4x?x8xf32>
  %vt = lathe.transpose %v : tensor<?x4x8xf32> -> tensor<4x?x8xf32>
  %s = lathe.matmul %qt, %kt transpose_b : tensor<4x?x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x?xf32>
  %m = lathe.mask %s, %pos window 0 : tensor<4x?x?xf32>, tensor<?xi32>
  // expected-remark @below {{attention is not fused, because its heads are repeated otherwise than keys and values equally often; only a fused one gets a KV cache and a kernel of its own}}
  %p = lathe.softmax %m : tensor<4x?x?xf32>
  %o = lathe.matmul %p, %vt : tensor<4x?x?xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  %r = lathe.transpose %o : tensor<4x?x8xf32> -> tensor<?x4x8xf32>
  return %r : tensor<?x4x8xf32>
}

// Without a mask it is not causal.
// CHECK-LABEL: func.func @unmasked
// CHECK-NOT: lathe.attention
func.func @unmasked(%q: tensor<?x2x8xf32>, %qt: tensor<2x?x8xf32>, %pos: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %t = lathe.transpose %q : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %s = lathe.matmul %t, %t transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  // expected-remark @below {{attention is not fused, because its softmax reads no lathe.mask}}
  %p = lathe.softmax %s : tensor<2x?x?xf32>
  %o = lathe.matmul %p, %t : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %r = lathe.transpose %o : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  return %r : tensor<?x2x8xf32>
}

// Scores that something else bends.
// CHECK-LABEL: func.func @bent
// CHECK-NOT: lathe.attention
func.func @bent(%q: tensor<?x2x8xf32>, %qt: tensor<2x?x8xf32>, %pos: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %t = lathe.transpose %q : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %s = lathe.matmul %t, %t transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %g = lathe.gelu %s : tensor<2x?x?xf32>
  %m = lathe.mask %g, %pos window 0 : tensor<2x?x?xf32>, tensor<?xi32>
  // expected-remark @below {{attention is not fused, because between query times key and its mask is more than a scale and then a softcap}}
  %p = lathe.softmax %m : tensor<2x?x?xf32>
  %o = lathe.matmul %p, %t : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %r = lathe.transpose %o : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  return %r : tensor<?x2x8xf32>
}

// Heads that come transposed.
// CHECK-LABEL: func.func @given
// CHECK-NOT: lathe.attention
func.func @given(%q: tensor<?x2x8xf32>, %qt: tensor<2x?x8xf32>, %pos: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %s = lathe.matmul %qt, %qt transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = lathe.mask %s, %pos window 0 : tensor<2x?x?xf32>, tensor<?xi32>
  // expected-remark @below {{attention is not fused, because its queries, keys and values are not all transposed heads}}
  %p = lathe.softmax %m : tensor<2x?x?xf32>
  %o = lathe.matmul %p, %qt : tensor<2x?x?xf32>, tensor<2x?x8xf32> -> tensor<2x?x8xf32>
  %r = lathe.transpose %o : tensor<2x?x8xf32> -> tensor<?x2x8xf32>
  return %r : tensor<?x2x8xf32>
}

// Only the weights are wanted.
// CHECK-LABEL: func.func @weights
// CHECK-NOT: lathe.attention
func.func @weights(%q: tensor<?x2x8xf32>, %qt: tensor<2x?x8xf32>, %pos: tensor<?xi32>) -> tensor<2x?x?xf32> {
  %t = lathe.transpose %q : tensor<?x2x8xf32> -> tensor<2x?x8xf32>
  %s = lathe.matmul %t, %t transpose_b : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> tensor<2x?x?xf32>
  %m = lathe.mask %s, %pos window 0 : tensor<2x?x?xf32>, tensor<?xi32>
  // expected-remark @below {{attention is not fused, because no transposed product of its weights and values follows}}
  %p = lathe.softmax %m : tensor<2x?x?xf32>
  return %p : tensor<2x?x?xf32>
}
