// RUN: lathe-opt --split-input-file --kv-cache-layout --verify-diagnostics %s | FileCheck %s
// RUN: lathe-opt --split-input-file --kv-cache-layout=dtype=f32 --verify-diagnostics %s | FileCheck %s --check-prefix=F32
// RUN: lathe-opt --split-input-file --kv-cache-layout=dtype=bf16 --verify-diagnostics %s | FileCheck %s --check-prefix=BF16
// RUN: lathe-opt --split-input-file --kv-cache-layout=dtype=int8 --verify-diagnostics %s | FileCheck %s --check-prefix=INT8

// Layers with one window share a group; a page holds 16 tokens of all of them.
// CHECK: module attributes {lathe.form = "step"}
// CHECK: lathe.kv_group @full id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(4096) k_offsets([0, 2048]) v_offsets([1024, 3072])
// CHECK: lathe.kv_group @window8 id(1) kind(<window>) window(8) element(f16) kv_heads(2) head_dim(16) layers([1]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
// CHECK: func.func @body(%[[T:.*]]: tensor<?xi32>, %[[Q:.*]]: tensor<?x4x16xf32>, %[[K:.*]]: tensor<?x2x16xf32>, %[[B:.*]]: !lathe.batch)
// CHECK: %[[B1:.*]] = lathe.kv_append %[[B]], %[[K]], %[[K]] into @full layer 0
// CHECK: lathe.paged_attention %[[B1]], %[[Q]] from @full layer 0
// CHECK: %[[B2:.*]] = lathe.kv_append %[[B1]], %{{.*}} into @window8 layer 1
// CHECK: lathe.paged_attention %[[B2]], %{{.*}} from @window8 layer 1
// CHECK: lathe.kv_append %[[B2]], %{{.*}} into @full layer 2
// BF16: element(bf16) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(4096)
// INT8: element(i8) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(2560) k_offsets([0, 1280]) v_offsets([640, 1920])
// F32: element(f32) kv_heads(2) head_dim(16) layers([0, 2]) page_bytes(8192)
module attributes {lathe.form = "sequence"} {
  func.func @body(%t: tensor<?xi32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>) -> tensor<?x4x16xf32> {
    %p = lathe.positions %t : tensor<?xi32>
    %0 = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
    %1 = lathe.attention %0, %k, %k, %p scale 0.25 window 8 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
    %2 = lathe.attention %1, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
    return %2 : tensor<?x4x16xf32>
  }
}

// -----

module attributes {lathe.form = "sequence"} {
  func.func @body(%s: tensor<4x?x?xf32>) -> tensor<4x?x?xf32> {
    // expected-error @+1 {{needs fuse-attention first}}
    %p = lathe.softmax %s : tensor<4x?x?xf32>
    return %p : tensor<4x?x?xf32>
  }
}
