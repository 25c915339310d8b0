// RUN: lathe-opt --merge-linears %s | FileCheck %s
// RUN: lathe-opt --merge-linears %s --verify-diagnostics -o %t

lathe.weight @q : tensor<64x64x!lathe.block<q5_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2816>
lathe.weight @k : tensor<32x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2176>
lathe.weight @f : tensor<32x64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 8192>
lathe.weight @b : tensor<32xf32> = #lathe.source<file = 0, offset = 0, bytes = 128>

// Formats may differ; a bias keeps its place; order is the model's.
// CHECK-LABEL: func.func @quantized
// CHECK: %[[R:.*]]:2 = lathe.merged_linear %arg0, [@q, @k] biases [unit, @b]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @quantized(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %0 = lathe.linear %x, @q : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lathe.linear %x, @k bias @b : tensor<?x64xf32> -> tensor<?x32xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x32xf32>
}

// Quantized and float weights will want different inputs.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: merged_linear
func.func @mixed(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %0 = lathe.linear %x, @q : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-remark @below {{float weights read the same input as quantized ones and are not merged with them; weights of one kind would be one kernel}}
  %1 = lathe.linear %x, @f : tensor<?x64xf32> -> tensor<?x32xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x32xf32>
}
