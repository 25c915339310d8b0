/// \file
/// Fixed-width names usable both in freestanding generated kernels (built with
/// -ffreestanding -nostdinc) and in hosted code.
#ifndef LATHE_KERNELS_ABI_TYPES_H
#define LATHE_KERNELS_ABI_TYPES_H

namespace lathe {

using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using i16 = short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long;
using i64 = long;
using f32 = float;
using f64 = double;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8,
              "Lathe targets LP64 Linux");

} // namespace lathe

#endif // LATHE_KERNELS_ABI_TYPES_H
