// RUN: lathe-opt --canonicalize %s | FileCheck %s

// A reshape to its own type, and two that undo each other.
// CHECK-LABEL: func.func @reshape
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>)
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @reshape(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x4x16xf32>
  %2 = lathe.reshape %1 : tensor<?x4x16xf32> -> tensor<?x64xf32>
  return %0, %2 : tensor<?x64xf32>, tensor<?x64xf32>
}

// A reshape to other heads stays.
// CHECK-LABEL: func.func @heads
// CHECK-COUNT-2: lathe.reshape
func.func @heads(%x: tensor<?x4x16xf32>) -> tensor<?x2x32xf32> {
  %0 = lathe.reshape %x : tensor<?x4x16xf32> -> tensor<?x64xf32>
  %1 = lathe.reshape %0 : tensor<?x64xf32> -> tensor<?x2x32xf32>
  return %1 : tensor<?x2x32xf32>
}

// CHECK-LABEL: func.func @transpose
// CHECK-SAME: (%[[X:.*]]: tensor<?x4x16xf32>)
// CHECK-NEXT: return %[[X]]
func.func @transpose(%x: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %0 = lathe.transpose %x : tensor<?x4x16xf32> -> tensor<4x?x16xf32>
  %1 = lathe.transpose %0 : tensor<4x?x16xf32> -> tensor<?x4x16xf32>
  return %1 : tensor<?x4x16xf32>
}

// CHECK-LABEL: func.func @scale
// CHECK-SAME: (%[[X:.*]]: tensor<?x64xf32>)
// CHECK-NEXT: %[[Y:.*]] = lathe.scale %[[X]] by 2.000000e+00
// CHECK-NEXT: return %[[X]], %[[Y]]
func.func @scale(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = lathe.scale %x by 1.0 : tensor<?x64xf32>
  %1 = lathe.scale %x by 2.0 : tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// What nobody reads goes.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%x: tensor<?x64xf32>) {
  %0 = lathe.silu %x : tensor<?x64xf32>
  return
}

// A kernel keeps its constants: nothing outside may hold them.
// CHECK-LABEL: kernel.rowwise @halve
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT: arith.mulf %[[X]], %[[HALF]] : f32
kernel.rowwise @halve k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  %half = arith.constant 0.5 : f32
  %y = arith.mulf %x, %half : f32
  kernel.yield %y : f32
}
