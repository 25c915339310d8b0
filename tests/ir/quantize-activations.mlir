// RUN: lathe-opt --quantize-activations %s | FileCheck %s

lathe.weight @q : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2560>
lathe.weight @f : tensor<32x64x!lathe.block<f16, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4096>

// One quantization serves all quantized readers; float weights keep f32.
// CHECK-LABEL: func.func @share
// CHECK-NEXT: %[[Q:.*]] = lathe.quantize_rows %arg0 : tensor<?x64xf32> -> tensor<?x64x!lathe.q8>
// CHECK-NEXT: lathe.linear %[[Q]], @q : tensor<?x64x!lathe.q8> -> tensor<?x64xf32>
// CHECK-NEXT: lathe.linear %[[Q]], @q
// CHECK-NEXT: lathe.linear %arg0, @f : tensor<?x64xf32> -> tensor<?x32xf32>
// CHECK-NOT: quantize_rows
func.func @share(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>) {
  %0 = lathe.linear %x, @q : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lathe.linear %x, @q : tensor<?x64xf32> -> tensor<?x64xf32>
  %2 = lathe.linear %x, @f : tensor<?x64xf32> -> tensor<?x32xf32>
  return %0, %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>
}
