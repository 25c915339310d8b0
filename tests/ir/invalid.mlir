// RUN: lathe-opt %s --split-input-file --verify-diagnostics

// Everything that the verifiers of both dialects refuse. A file of IR may come
// from anywhere, so each of these must be an error, never a crash.

// Module attributes.
// expected-error @+1 {{'lathe.form' must be "sequence" or "step"}}
module attributes {lathe.form = "steps"} {}

// -----

// expected-error @+1 {{'lathe.phase' must be a string}}
module attributes {lathe.phase = 3} {}

// -----

// expected-error @+1 {{'lathe.model' must be a #lathe.model}}
module attributes {lathe.model = "llama"} {}

// -----

// expected-error @+1 {{'lathe.files' must be an array of #lathe.file}}
module attributes {lathe.files = ["m.gguf"]} {}

// -----

// expected-error @+1 {{carries 'lathe.form', which belongs on the module}}
func.func private @f() attributes {lathe.form = "step"}

// -----

module attributes {lathe.form = "sequence"} {
  // expected-error @+1 {{belongs to step form, but the module is in sequence form}}
  lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
}

// -----

module attributes {lathe.form = "step"} {
  func.func @f(%s: tensor<4x?x?xf32>, %p: tensor<?xi32>) {
    // expected-error @+1 {{belongs to sequence form, but the module is in step form}}
    %m = lathe.mask %s, %p window 0 : tensor<4x?x?xf32>, tensor<?xi32>
    return
  }
}

// -----

// Types.
// expected-error @+2 {{failed to parse BlockType parameter 'format'}}
// expected-error @+1 {{unknown block format 'q9_0'; known are f32 f16 bf16 q4_0}}
lathe.weight @w : tensor<64x64x!lathe.block<q9_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>

// -----

// lathe.weight.
// expected-error @+1 {{needs a static ranked tensor type, not 'tensor<?xf32>'}}
lathe.weight @w : tensor<?xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{needs a static ranked tensor type, not 'f32'}}
lathe.weight @w : f32 = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{has an empty dimension}}
lathe.weight @w : tensor<0xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{of !lathe.block must be a matrix}}
lathe.weight @w : tensor<64x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{has rows of 48, not a multiple of q8_0's block of 32}}
lathe.weight @w : tensor<1x48x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{needs 4352 bytes for 'tensor<64x64x!lathe.block<q8_0, rows>>', but its source has 256}}
lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{needs 252 bytes for 'tensor<63xf32>', but its source has 256}}
lathe.weight @w : tensor<63xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{needs elements of f32 or !lathe.block, not 'f64'}}
lathe.weight @w : tensor<64xf64> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{is larger than 2^64 bytes}}
lathe.weight @w : tensor<8589934592x8589934592xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{is larger than 2^64 bytes}}
lathe.weight @w : tensor<8589934592x8589934592x!lathe.block<f32, rows>> = #lathe.source<file = 0, offset = 0, bytes = 256>

// -----

// expected-error @+1 {{needs a #lathe.source or #lathe.recipe, not 3}}
lathe.weight @w : tensor<64xf32> = 3 : i32

// -----

// expected-error @+1 {{has an unknown transform 'shuffle'}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"shuffle", {}, [#lathe.source<file = 0, offset = 0, bytes = 256>]>

// -----

// expected-error @+1 {{gives transform 'interleave' 1 inputs; it takes 2 to 2}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"interleave", {}, [#lathe.source<file = 0, offset = 0, bytes = 256>]>

// -----

// expected-error @+1 {{has a recipe nested deeper than 16}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 0, bytes = 256>]>]>]>]>]>]>]>]>]>]>]>]>]>]>]>]>]>

// -----

module attributes {lathe.files = [#lathe.file<"m.gguf", 1000, "00">]} {
  // expected-error @+1 {{names source file 1, but 'lathe.files' has 1}}
  lathe.weight @w : tensor<64xf32> = #lathe.source<file = 1, offset = 0, bytes = 256>
}

// -----

module attributes {lathe.files = [#lathe.file<"m.gguf", 1000, "00">]} {
  // expected-error @+1 {{reads bytes 800 + 256, outside of 'm.gguf' (1000 bytes)}}
  lathe.weight @w : tensor<64xf32> = #lathe.source<file = 0, offset = 800, bytes = 256>
}

// -----

// What recipes can make.
// expected-error @+1 {{cannot have transform 'pack' make 'tensor<64xf32>'}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{cannot have transform 'convert' make}}
lathe.weight @w : tensor<64x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"convert", {format = "f16"}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs 'rows' for 'interleave', of which two groups divide its 128 rows}}
lathe.weight @w : tensor<128x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {}, [#lathe.source<file = 0, offset = 0, bytes = 2560>, #lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs 'rows' for 'interleave'}}
lathe.weight @w : tensor<128x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {rows = 48}, [#lathe.source<file = 0, offset = 0, bytes = 2560>, #lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs 'rows' for 'interleave'}}
lathe.weight @w : tensor<128x64x!lathe.block<q4_1, rows>> = #lathe.recipe<"interleave", {rows = -16}, [#lathe.source<file = 0, offset = 0, bytes = 2560>, #lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs 'format', a float format, and a source for 'convert'}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"convert", {format = "q8_0"}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs 128 bytes for 'tensor<64xf32>' from f16, but its source has 2560}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"convert", {format = "f16"}, [#lathe.source<file = 0, offset = 0, bytes = 2560>]>

// -----

// expected-error @+1 {{needs a rope_table to be [positions, pairs, 2]}}
lathe.weight @w : tensor<64x2xf32> = #lathe.recipe<"rope_table", {}, []>

// -----

// expected-error @+1 {{of at most 2^28 values}}
lathe.weight @w : tensor<1000000000x64x2xf32> = #lathe.recipe<"rope_table", {}, []>

// -----

// lathe.kv_group.
// expected-error @+1 {{needs one K and one V offset for each of its layers}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0, 1]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// expected-error @+1 {{needs positive kv_heads and head_dim}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(0) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// expected-error @+1 {{stores f16, bf16, f32 or i8, not 'f64'}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f64) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// expected-error @+1 {{needs a positive window if and only if its kind is window}}
lathe.kv_group @g id(0) kind(<full>) window(4) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// expected-error @+1 {{needs a positive window if and only if its kind is window}}
lathe.kv_group @g id(0) kind(<window>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// expected-error @+1 {{has an offset of 8 that is not a multiple of 64 inside a page of 2048 bytes}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([8]) v_offsets([1024])

// -----

// expected-error @+1 {{has an offset of 1088 that is not a multiple of 64 inside a page}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1088])

// -----

// A head of int8 has its scales behind it: 2 x 320 bytes.
// expected-error @+1 {{has an offset of 640 that is not a multiple of 64 inside a page of 1216 bytes}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(i8) kv_heads(2) head_dim(16) layers([0]) page_bytes(1216) k_offsets([0]) v_offsets([640])

// -----

// expected-error @+1 {{has tokens larger than 2^63 bytes}}
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(4611686018427387904) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])

// -----

// lathe.embed.
func.func @f(%t: tensor<?xi32>) {
  // expected-error @+1 {{names @w, which is not a lathe.weight}}
  %x = lathe.embed %t, @w : tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%t: tensor<?xi32>) {
  // expected-error @+1 {{needs @w to be a matrix of !lathe.block with 32 columns}}
  %x = lathe.embed %t, @w : tensor<?xi32> -> tensor<?x32xf32>
  return
}

// -----

lathe.weight @v : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
func.func @f(%t: tensor<?xi32>) {
  // expected-error @+1 {{needs @v to be a matrix of !lathe.block}}
  %x = lathe.embed %t, @v : tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%t: tensor<?xi32>) {
  // expected-error @+1 {{which differ in their rows}}
  %x = lathe.embed %t, @w : tensor<?xi32> -> tensor<4x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%t: tensor<?xi64>) {
  // expected-error @+1 {{must be 1D tensor of 32-bit signless integer values}}
  %x = "lathe.embed"(%t) {weight = @w} : (tensor<?xi64>) -> tensor<?x64xf32>
  return
}

// -----

// lathe.linear.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{names @w, which is not a lathe.weight}}
  %y = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @v : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs @v to be a matrix of !lathe.block}}
  %y = lathe.linear %x, @v : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x32xf32>) {
  // expected-error @+1 {{has an input of 32 columns, but @w has 64}}
  %y = lathe.linear %x, @w : tensor<?x32xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{has a result of 32 columns, but @w has 64 rows}}
  %y = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{which differ in their rows}}
  %y = lathe.linear %x, @w : tensor<?x64xf32> -> tensor<3x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{names @b, which is not a lathe.weight}}
  %y = lathe.linear %x, @w bias @b : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs bias @w to be f32 of 64}}
  %y = lathe.linear %x, @w bias @w : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// lathe.merged_linear.
lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{has 2 weights and 1 results}}
  %y = lathe.merged_linear %x, [@w, @w] : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs one entry in 'biases' per weight}}
  %y = lathe.merged_linear %x, [@w] biases [unit, unit] : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{neither a symbol nor unit}}
  %y = lathe.merged_linear %x, [@w] biases [3] : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{has a result of 32 columns, but @w has 64 rows}}
  %y = lathe.merged_linear %x, [@w] : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lathe.matmul.
func.func @f(%a: tensor<4x?x16xf32>, %b: tensor<4x?x16xf32>, %c: tensor<3x?x16xf32>) {
  // expected-error @+1 {{cannot multiply}}
  %y = lathe.matmul %a, %b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x?xf32>
  return
}

// -----

func.func @f(%a: tensor<4x?x16xf32>, %b: tensor<4x?x16xf32>, %c: tensor<3x?x16xf32>) {
  // expected-error @+1 {{cannot multiply}}
  %y = lathe.matmul %a, %c transpose_b : tensor<4x?x16xf32>, tensor<3x?x16xf32> -> tensor<4x?x?xf32>
  return
}

// -----

func.func @f(%a: tensor<4x?x16xf32>, %b: tensor<4x?x16xf32>, %c: tensor<3x?x16xf32>) {
  // expected-error @+1 {{cannot multiply}}
  %y = lathe.matmul %a, %b transpose_b : tensor<4x?x16xf32>, tensor<4x?x16xf32> -> tensor<4x?x16xf32>
  return
}

// -----

// lathe.reshape.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{changes the number of values}}
  %y = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x4x15xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{changes the number of values}}
  %y = lathe.reshape %x : tensor<?x64xf32> -> tensor<4x4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{splits and joins static dimensions only}}
  %y = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{has rows of more than 2^63 values}}
  %y = lathe.reshape %x : tensor<?x64xf32> -> tensor<?x8589934592x8589934592xf32>
  return
}

// -----

// lathe.transpose.
func.func @f(%x: tensor<?x4x16xf32>) {
  // expected-error @+1 {{cannot turn 'tensor<?x4x16xf32>' into 'tensor<?x4x16xf32>'}}
  %y = lathe.transpose %x : tensor<?x4x16xf32> -> tensor<?x4x16xf32>
  return
}

// -----

// lathe.repeat_heads.
func.func @f(%x: tensor<?x4x16xf32>) {
  // expected-error @+1 {{cannot repeat}}
  %y = lathe.repeat_heads %x times 2 : tensor<?x4x16xf32> -> tensor<?x12x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4x16xf32>) {
  // expected-error @+1 {{cannot repeat}}
  %y = lathe.repeat_heads %x times 0 : tensor<?x4x16xf32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?x16xf32>) {
  // expected-error @+1 {{needs static heads that are not empty}}
  %y = lathe.repeat_heads %x times 2 : tensor<?x?x16xf32> -> tensor<?x?x16xf32>
  return
}

// -----

// Elementwise.
func.func @f(%x: tensor<?x64xf32>, %z: tensor<?x32xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %y = "lathe.add"(%x, %z) : (tensor<?x64xf32>, tensor<?x32xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<64xf32>) {
  // expected-error @+1 {{must be 2D/3D tensor of 32-bit float values}}
  %y = lathe.silu %x : tensor<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs a finite positive cap, not}}
  %y = lathe.softcap %x cap 0.0 : tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs a finite positive cap, not}}
  %y = lathe.softcap %x cap 0x7F800000 : tensor<?x64xf32>
  return
}

// -----

// lathe.rms_norm.
lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs @w to be f32 of 64}}
  %y = lathe.rms_norm %x, @w epsilon 1.0e-5 : tensor<?x64xf32>
  return
}

// -----

lathe.weight @v : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs a finite epsilon of 0 or more}}
  %y = lathe.rms_norm %x, @v epsilon -1.0 : tensor<?x64xf32>
  return
}

// -----

lathe.weight @v : tensor<64xf32> = #lathe.source<file = 0, offset = 0, bytes = 256>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{needs a finite epsilon of 0 or more}}
  %y = lathe.rms_norm %x, @v epsilon 0x7FC00000 : tensor<?x64xf32>
  return
}

// -----

// lathe.rope.
lathe.weight @r : tensor<128x9x2xf32> = #lathe.recipe<"rope_table", {}, []>
func.func @f(%x: tensor<?x4x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs @r to be f32 [context, pairs, 2] with at most 8 pairs}}
  %y = lathe.rope %x, %p, @r style <halves> : tensor<?x4x16xf32>, tensor<?xi32>
  return
}

// -----

lathe.weight @r : tensor<128x8x2xf32> = #lathe.recipe<"rope_table", {}, []>
func.func @f(%x: tensor<?x4x16xf32>, %p: tensor<5xi32>) {
  // expected-error @+1 {{which differ in their rows}}
  %y = lathe.rope %x, %p, @r style <halves> : tensor<?x4x16xf32>, tensor<5xi32>
  return
}

// -----

lathe.weight @r : tensor<128x8x2xf32> = #lathe.recipe<"rope_table", {}, []>
func.func @f(%x: tensor<?x?x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs static heads that are not empty}}
  %y = lathe.rope %x, %p, @r style <halves> : tensor<?x?x16xf32>, tensor<?xi32>
  return
}

// -----

// lathe.mask.
func.func @f(%s: tensor<4x?x?xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs a window of 0 (none) or more, not -1}}
  %m = lathe.mask %s, %p window -1 : tensor<4x?x?xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%s: tensor<4x?x7xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs one position per row and key}}
  %m = lathe.mask %s, %p window 0 : tensor<4x?x7xf32>, tensor<?xi32>
  return
}

// -----

// lathe.attention.
func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x3x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{cannot attend with queries}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x3x16xf32>, tensor<?x3x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x2x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{cannot attend with queries}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x0x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs static heads that are not empty, not 'tensor<?x0x16xf32>'}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x0x16xf32>, tensor<?x0x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x?x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs static heads that are not empty}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x?x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x?x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<3xi32>) {
  // expected-error @+1 {{which differ in their rows}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<3xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<5x2x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{which differ in their rows}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<5x2x16xf32>, tensor<5x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs a finite scale, and a window and a softcap of 0 (none) or more}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window -1 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs a finite scale, and a window and a softcap of 0 (none) or more}}
  %o = lathe.attention %q, %k, %k, %p scale 0.25 window 0 softcap -1.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{needs a finite scale, and a window and a softcap of 0 (none) or more}}
  %o = lathe.attention %q, %k, %k, %p scale 0x7F800000 window 0 softcap 0.0 : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32> -> tensor<?x4x16xf32>
  return
}

// -----

// lathe.quantize_rows.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{keeps the shape, but turns}}
  %y = lathe.quantize_rows %x : tensor<?x64xf32> -> tensor<?x32x!lathe.q8>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{keeps the shape, but turns}}
  %y = lathe.quantize_rows %x : tensor<?x64xf32> -> tensor<4x64x!lathe.q8>
  return
}

// -----

// lathe.kv_append.
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %k: tensor<?x2x16xf32>, %l: tensor<?x3x16xf32>, %n: tensor<4x2x16xf32>) {
  // expected-error @+1 {{names @x, which is not a lathe.kv_group}}
  %y = lathe.kv_append %b, %k, %k into @x layer 0 : tensor<?x2x16xf32>, tensor<?x2x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %k: tensor<?x2x16xf32>, %l: tensor<?x3x16xf32>, %n: tensor<4x2x16xf32>) {
  // expected-error @+1 {{appends to layer 1, which @g does not hold}}
  %y = lathe.kv_append %b, %k, %k into @g layer 1 : tensor<?x2x16xf32>, tensor<?x2x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %k: tensor<?x2x16xf32>, %l: tensor<?x3x16xf32>, %n: tensor<4x2x16xf32>) {
  // expected-error @+1 {{to a group of 2 heads of 16}}
  %y = lathe.kv_append %b, %l, %k into @g layer 0 : tensor<?x3x16xf32>, tensor<?x2x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %k: tensor<?x2x16xf32>, %l: tensor<?x3x16xf32>, %n: tensor<4x2x16xf32>) {
  // expected-error @+1 {{to a group of 2 heads of 16}}
  %y = lathe.kv_append %b, %k, %l into @g layer 0 : tensor<?x2x16xf32>, tensor<?x3x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %k: tensor<?x2x16xf32>, %l: tensor<?x3x16xf32>, %n: tensor<4x2x16xf32>) {
  // expected-error @+1 {{which differ in their rows}}
  %y = lathe.kv_append %b, %k, %n into @g layer 0 : tensor<?x2x16xf32>, tensor<4x2x16xf32>
  return
}

// -----

// lathe.paged_attention.
lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x4x16xf32>) {
  // expected-error @+1 {{names @x, which is not a lathe.kv_group}}
  %o = lathe.paged_attention %b, %q from @x layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x4x16xf32>) {
  // expected-error @+1 {{reads layer 1, which @g does not hold}}
  %o = lathe.paged_attention %b, %q from @g layer 1 scale 0.25 window 0 softcap 0.0 : tensor<?x4x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x3x16xf32>) {
  // expected-error @+1 {{for a group of 2 KV heads of 16}}
  %o = lathe.paged_attention %b, %q from @g layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x3x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x4x8xf32>) {
  // expected-error @+1 {{for a group of 2 KV heads of 16}}
  %o = lathe.paged_attention %b, %q from @g layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x4x8xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x?x16xf32>) {
  // expected-error @+1 {{needs static heads that are not empty}}
  %o = lathe.paged_attention %b, %q from @g layer 0 scale 0.25 window 0 softcap 0.0 : tensor<?x?x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x4x16xf32>) {
  // expected-error @+1 {{has window 3, but its group keeps 0}}
  %o = lathe.paged_attention %b, %q from @g layer 0 scale 0.25 window 3 softcap 0.0 : tensor<?x4x16xf32>
  return
}

// -----

lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(2) head_dim(16) layers([0]) page_bytes(2048) k_offsets([0]) v_offsets([1024])
func.func @f(%b: !lathe.batch, %q: tensor<?x4x16xf32>) {
  // expected-error @+1 {{needs a finite scale, and a softcap of 0 (none) or more}}
  %o = lathe.paged_attention %b, %q from @g layer 0 scale 0.25 window 0 softcap -2.0 : tensor<?x4x16xf32>
  return
}

// -----

// kernel.embed.
// expected-error @+1 {{needs vocab and k of 1 to 2^28, not 0}}
kernel.embed @k vocab(0) k(64) weight(!lathe.block<q8_0, r16>) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// expected-error @+1 {{needs an element region of 1 f32 arguments, not 2}}
kernel.embed @k vocab(64) k(64) weight(!lathe.block<q8_0, r16>) {
^bb0(%x: f32, %y: f32):
  kernel.yield %x : f32
}

// -----

// kernel.rowwise.
// expected-error @+1 {{needs k of 1 to 2^28, not 0}}
kernel.rowwise @k k(0) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// expected-error @+1 {{needs one region per stage}}
kernel.rowwise @k k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>, #kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// expected-error @+1 {{needs an epsilon of f32}}
kernel.rowwise @k k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f64, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// expected-error @+1 {{stores nothing}}
kernel.rowwise @k k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = []>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// kernel.gemm.
// expected-error @+1 {{needs k of 1 to 2^28, not 0}}
kernel.gemm @k k(0) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{needs one region per segment}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>, #kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{needs n of 1 to 2^28, not 0}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 0, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{has k = 48, not a multiple of q8_0's block}}
kernel.gemm @k k(48) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{needs q8 input for quantized weights and f32 input for float weights}}
kernel.gemm @k k(64) rows(<T>) input(<f32>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{needs q8 input for quantized weights and f32 input for float weights}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <f16, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{pairs 16-row groups; n = 24}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 24, weight = <q8_0, r16>, paired = true, store = f32, sides = []>]) {
^bb0(%a: f32, %b: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{stores whole q8 blocks; n = 48}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 48, weight = <q8_0, r16>, paired = false, store = q8, sides = []>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

// expected-error @+1 {{needs an element region of 2 f32 arguments, not 1}}
kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = [column]>]) {
^bb0(%a: f32):
  kernel.yield %a : f32
}

// -----

kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  // expected-error @+1 {{is not allowed in an element region}}
  %s = math.sin %a : f32
  kernel.yield %s : f32
}

// -----

kernel.gemm @k k(64) rows(<T>) input(<q8>) segments([#kernel.segment<n = 64, weight = <q8_0, r16>, paired = false, store = f32, sides = []>]) {
^bb0(%a: f32):
  // expected-error @+1 {{must give f32 in an element region}}
  %c = arith.constant 1 : i32
  kernel.yield %a : f32
}

// -----

// kernel.rope_append, kernel.attention.
// expected-error @+1 {{needs heads in whole groups of kv_heads}}
kernel.rope_append @k group(0) heads(4) kv_heads(3) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(f16) own_chunk(128)

// -----

// expected-error @+1 {{rotates at most head_dim / 2 pairs}}
kernel.rope_append @k group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(9) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(f16) own_chunk(128)

// -----

// expected-error@+1 {{own_chunk is a multiple of 16 or 0}}
kernel.rope_append @k group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(f16) own_chunk(100)

// -----

// expected-error @+1 {{stores f16, bf16, f32 or i8, not 'i16'}}
kernel.rope_append @k group(0) heads(4) kv_heads(2) head_dim(16) rope_pairs(8) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(i16) own_chunk(128)

// -----

// expected-error @+1 {{needs heads, kv_heads and head_dim of 1 to 2^28, not 0}}
kernel.attention @k group(0) heads(4) kv_heads(0) head_dim(16) chunk(128) window(0) softcap(0.0) element(f16) store(<f32>)

// -----

// expected-error @+1 {{reads f16, bf16, f32 or i8, not 'f64'}}
kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(f64) store(<f32>)

// -----

// expected-error @+1 {{reads i8 in blocks of 32 keys; chunk = 48}}
kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(48) window(0) softcap(0.0) element(i8) store(<f32>)

// -----

// expected-error @+1 {{needs a chunk of whole pages}}
kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(24) window(0) softcap(0.0) element(f16) store(<f32>)

// -----

// expected-error @+1 {{reads f16, bf16, f32 or i8, not 'f64'}}
kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(f64) store(<f32>)

// -----

// expected-error @+1 {{stores whole q8 blocks per head}}
kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(f16) store(<q8>)

// -----

// Programs.
kernel.program @p {
  // expected-error @+1 {{names @w, which is not a lathe.weight}}
  %w = kernel.weight @w
}

// -----

kernel.program @p {
  // expected-error @+1 {{names @k, which is not a kernel}}
  kernel.launch @k()
}

// -----

kernel.attention @k group(0) heads(4) kv_heads(2) head_dim(16) chunk(128) window(0) softcap(0.0) element(f16) store(<f32>)
kernel.program @p {
  %b = kernel.step_buffer <hidden>
  // expected-error @+1 {{passes 2 buffers to @k, which takes 5}}
  kernel.launch @k(%b, %b)
}

// -----

lathe.weight @w : tensor<64x32x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 2176>
kernel.embed @k vocab(64) k(64) weight(!lathe.block<q8_0, r16>) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.program @p {
  %w = kernel.weight @w
  %b = kernel.step_buffer <hidden>
  // expected-error @+1 {{passes @w of type 'tensor<64x32x!lathe.block<q8_0, rows>>' as weight of @k, which takes 64 x 64 of q8_0}}
  kernel.launch @k(%w, %b)
}

// -----

kernel.embed @k vocab(64) k(64) weight(!lathe.block<q8_0, r16>) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.program @p {
  %b = kernel.step_buffer <hidden>
  // expected-error @+1 {{passes no weight as weight of @k}}
  kernel.launch @k(%b, %b)
}

// -----

lathe.weight @w : tensor<64x64x!lathe.block<q8_0, rows>> = #lathe.source<file = 0, offset = 0, bytes = 4352>
kernel.embed @k vocab(64) k(64) weight(!lathe.block<q8_0, r16>) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.program @p {
  %w = kernel.weight @w
  %a = kernel.alloc <t = 252, s = 0, c = 0, n = 0, e = 0>
  // expected-error @+1 {{as out of @k, which needs 256 bytes a row}}
  kernel.launch @k(%w, %a)
}

// -----

kernel.rope_append @k group(0) heads(4) kv_heads(4) head_dim(16) rope_pairs(0) style(<halves>) qk_norm(false) epsilon(0.0) q_scale(1.0) element(f16) own_chunk(0)
kernel.program @p {
  %b = kernel.step_buffer <hidden>
  // expected-error @+1 {{is for wanted rows, but @k does not run over them one by one}}
  kernel.launch @k(%b, %b, %b, %b, %b, %b) wanted
}

// -----

// expected-error @+1 {{expects parent op 'kernel.program'}}
%b = kernel.step_buffer <hidden>

// -----

kernel.rowwise @k k(64) rows(<T>) replicated(false) stages([#kernel.stage<rms = false, epsilon = 0.0 : f32, sides = [], stores = [f32]>]) {
^bb0(%x: f32):
  kernel.yield %x : f32
}
kernel.program @p {
  %a = kernel.step_buffer <head_input>
  %b = kernel.step_buffer <hidden>
  // expected-error @+1 {{is launch 0 and cannot wait for launch 0}}
  kernel.launch @k(%a, %b) waits [0]
}

// -----

kernel.program @p {
  // expected-error @+1 {{has a negative part in}}
  %a = kernel.alloc <t = -1, s = 0, c = 0, n = 0, e = 0>
}

// -----

kernel.program @p {
  // expected-error @+1 {{has slot -2}}
  %a = kernel.alloc <t = 1, s = 0, c = 0, n = 0, e = 0> slot -2
}

// -----

// kernel.contract.
// expected-error @+1 {{needs 3 dims}}
kernel.contract @k op(<softmax>) dims([9, -1]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{needs dims (or -1 for the rows) of 1 to 2^28, not 0}}
kernel.contract @k op(<softmax>) dims([0, -1, -1]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{needs dims (or -1 for the rows) of 1 to 2^28, not 268435457}}
kernel.contract @k op(<softmax>) dims([268435457, -1, -1]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{of a linear needs the type of its weight}}
kernel.contract @k op(<linear>) dims([64, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{has k = 48, not a multiple of q8_0's block}}
kernel.contract @k op(<linear>) dims([48, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) weight(!lathe.block<q8_0, r16>) bias(false)

// -----

// expected-error @+1 {{rotates at most head_dim / 2 pairs}}
kernel.contract @k op(<rope>) dims([-1, 4, 16, 9]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{needs heads in whole groups of kv_heads}}
kernel.contract @k op(<attention>) dims([4, 3, 16]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{needs 1 element regions}}
kernel.contract @k op(<map>) dims([-1, 1, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false)

// -----

// expected-error @+1 {{needs 0 element regions}}
kernel.contract @k op(<softmax>) dims([9, -1, -1]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// expected-error @+1 {{needs an element region of 2 f32 arguments, not 1}}
kernel.contract @k op(<combine>) dims([-1, 1, 64]) value(0.0) window(0) softcap(0.0) style(<adjacent>) bias(false) {
^bb0(%x: f32):
  kernel.yield %x : f32
}

// -----

// kernel.pick.
// expected-error @+1 {{needs k and n of 1 to 2^28, not 0}}
kernel.pick @k k(64) n(0) weight(!lathe.block<q8_0, r16>) coarse(!lathe.block<q5_0, r16>)

// -----

// expected-error @+1 {{needs a weight of q8_0 and a coarse one of q5_0}}
kernel.pick @k k(64) n(64) weight(!lathe.block<q4_0, r16>) coarse(!lathe.block<q5_0, r16>)

// -----

// expected-error @+1 {{has k = 48, not a multiple of 32}}
kernel.pick @k k(48) n(64) weight(!lathe.block<q8_0, r16>) coarse(!lathe.block<q5_0, r16>)

// -----

// expected-error @+1 {{needs a source for 'coarse', which makes q5_0}}
lathe.weight @w : tensor<64x64x!lathe.block<q4_0, rows>> = #lathe.recipe<"coarse", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>

// -----

// expected-error @+1 {{needs 'k' and a source for a vector of 'coarse_errors'}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"coarse_errors", {}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>

// -----

// expected-error @+1 {{needs 64 rows of 32 q8_0 elements, but its source has 4352 bytes}}
lathe.weight @w : tensor<64xf32> = #lathe.recipe<"coarse_errors", {k = 32}, [#lathe.source<file = 0, offset = 0, bytes = 4352>]>
