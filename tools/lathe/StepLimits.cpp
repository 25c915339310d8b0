#include "tools/lathe/StepLimits.h"

#include "runtime/device/CpuFeatures.h"
#include "runtime/device/MachineLimits.h"

#include <fmt/format.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::failFrom;
using runtime::Result;

Result<StepLimits> StepLimits::measure(u32 threads, std::string_view target) {
  runtime::CpuFeatures cpu = runtime::CpuFeatures::detect();
  auto bandwidth = runtime::measureBandwidth(threads);
  if (!bandwidth)
    return failFrom(bandwidth);
  auto int8 = runtime::measureInt8(threads, cpu.bestIsa());
  if (!int8)
    return failFrom(int8);
  auto f32s = runtime::measureF32(threads, cpu.bestIsa());
  if (!f32s)
    return failFrom(f32s);
  StepLimits limits = {.bandwidth = *bandwidth,
                       .int8Ops = 2 * *int8,
                       .f32Ops = 2 * *f32s,
                       .bf16Ops = 2 * *f32s};
  if (target.ends_with("bf16")) {
    auto bf16 = runtime::measureBf16(threads, cpu.bestIsa());
    if (!bf16)
      return failFrom(bf16);
    limits.bf16Ops = 2 * *bf16;
  }
  return limits;
}

const char *StepLimits::arithmeticOf(const runtime::LaunchCost &cost) const {
  f64 int8 = f64(cost.int8Ops) / int8Ops;
  f64 bf16 = multipliesBf16() ? f64(cost.bf16Ops) / bf16Ops : 0;
  f64 rest = computeTime(cost) - int8 - bf16;
  if (int8 >= rest && int8 >= bf16)
    return "int8";
  return bf16 >= rest ? "bf16" : "f32";
}

std::string StepLimits::text() const {
  std::string text =
      fmt::format("memory {:.1f} GB/s, int8 {:.0f} Gop/s, f32 {:.0f} Gop/s",
                  bandwidth / 1e9, int8Ops / 1e9, f32Ops / 1e9);
  if (multipliesBf16())
    text += fmt::format(", bf16 {:.0f} Gop/s", bf16Ops / 1e9);
  return text;
}

nlohmann::ordered_json StepLimits::json() const {
  return {{"bandwidth_bytes_per_second", bandwidth},
          {"int8_ops_per_second", int8Ops},
          {"f32_ops_per_second", f32Ops},
          {"bf16_ops_per_second", bf16Ops}};
}
