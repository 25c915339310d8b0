# How an engine's code is compiled (kernels/cpu/README.md): the flags of every
# layer, and each layer's own.

set(LATHE_KERNEL_FLAGS -std=c++20 -O3 -ffreestanding -nostdinc -fno-exceptions
  -fno-rtti -fno-math-errno)
set(LATHE_KERNEL_GENERIC_FLAGS -DLATHE_ISA_GENERIC)
set(LATHE_KERNEL_EMULATED_FLAGS -DLATHE_ISA_AVX512BF16 -DLATHE_SIMD_EMULATE)
set(LATHE_KERNEL_AVX2_FLAGS -DLATHE_ISA_AVX2 -mavx2 -mfma -mf16c)
set(LATHE_KERNEL_AVX512_FLAGS -DLATHE_ISA_AVX512 -mavx2 -mfma -mf16c -mavx512f
  -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512)
set(LATHE_KERNEL_AVX512BF16_FLAGS ${LATHE_KERNEL_AVX512_FLAGS} -mavx512bf16
  -ULATHE_ISA_AVX512 -DLATHE_ISA_AVX512BF16)
