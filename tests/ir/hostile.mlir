// RUN: not lathe-opt %s 2>&1 | FileCheck %s
// RUN: not lathe-opt - < %s 2>&1 | FileCheck %s
// RUN: lathe-opt --emit-bytecode %S/canonicalize.mlir -o %t && not lathe-opt %t 2>&1 | FileCheck %s --check-prefix=BYTECODE

// Text on which MLIR 19's parser reads freed memory is refused before it.
// CHECK: lathe-opt: {{.*}}line 10: {{.*}}%b
// CHECK-NOT: error
// BYTECODE: binary, expected IR as text
func.func @f(%t: tensor<?xi32>) {
  %a = lathe.positions %b : tensor<?xi32>
  %b = lathe.positions %t : tensor<?xi32>
  return
}
