#include "tools/lathe/PlanReport.h"

#include "runtime/support/Quote.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <array>
#include <cctype>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::HeadSharing;
using runtime::LayerKind;
using runtime::MemoryPlan;
using runtime::ModelShape;
using Json = nlohmann::ordered_json;

namespace {

/// "10.74 GB": powers of 1000, as memory and bandwidth of devices are sold.
std::string decimalBytes(u64 bytes) {
  static constexpr const char *units[] = {"B",  "kB", "MB", "GB",
                                          "TB", "PB", "EB"};
  f64 value = f64(bytes);
  size_t unit = 0;
  while (value >= 999.995 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, units[unit]);
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    c = char(std::toupper(u8(c)));
  return result;
}

/// "GQA-8": how heads are shared in these layers.
std::string sharingOf(const LayerKind &kind) {
  return kind.kvHeads == kind.heads ? "MHA"
         : kind.kvHeads == 1        ? "MQA"
                                    : fmt::format("GQA-{}", kind.kvHeads);
}

/// Lengths of the table of requests: powers of 4 and the context.
std::vector<u32> lengthsUpTo(u32 context) {
  std::vector<u32> lengths;
  for (u64 length = 256; length < context; length *= 4)
    lengths.push_back(u32(length));
  lengths.push_back(context);
  return lengths;
}

void row(std::string_view name, std::string_view text) {
  printOut("{:<11} {}\n", name, text);
}

void printModel(const PlanReport &report) {
  const ModelShape &shape = report.model.shape;
  bool large = shape.parameters >= 1'000'000'000;
  row("model",
      fmt::format("{} ({}), {:.2f} {} parameters", displayPath(shape.name),
                  displayPath(shape.architecture),
                  f64(shape.parameters) / (large ? 1e9 : 1e6),
                  large ? "G" : "M"));
  row("shape", fmt::format("{}, hidden {}, vocabulary {}, context {}",
                           counted(shape.layers, "layer"), shape.hidden,
                           shape.vocab, shape.context));
  for (const LayerKind &kind : shape.kinds)
    row(&kind == &shape.kinds.front() ? "attention" : "",
        fmt::format(
            "{}: {}, {} of {} ({}){}", counted(kind.layers, "layer"),
            counted(kind.heads, "head"), counted(kind.kvHeads, "KV head"),
            kind.headDim, sharingOf(kind),
            kind.window ? fmt::format(", window {}", kind.window) : ""));
}

void printWeights(const PlanReport &report) {
  const ModelShape &shape = report.model.shape;
  row("weights",
      fmt::format("{} as they are", decimalBytes(report.model.weightBytes)));
  for (const auto &precision : runtime::weightPrecisions()) {
    std::string scales;
    if (precision.formatBits != precision.bits)
      scales = fmt::format("   {} with scales, as {}",
                           decimalBytes(runtime::bytesOfWeights(
                               shape.parameters, precision.formatBits)),
                           precision.format);
    printOut(
        "  {:<10}{:>11}{}\n", upper(precision.name),
        decimalBytes(runtime::bytesOfWeights(shape.parameters, precision.bits)),
        scales);
  }
}

void printKv(const PlanReport &report) {
  const ModelShape &shape = report.model.shape;
  if (shape.kinds.empty())
    return row("KV cache", "none: each step evaluates the whole sequence");
  row("KV cache", fmt::format("in {}{:>12}{:>20}", report.kvDtype, "per token",
                              fmt::format("{} tokens", report.context)));
  auto line = [&](const std::string &name, HeadSharing sharing) {
    printOut(
        "  {:<16}{:>12}{:>20}\n", name,
        decimalBytes(runtime::kvBytesPerToken(shape, report.kvDtype, sharing)),
        decimalBytes(runtime::kvBytesOf(shape, report.kvDtype, report.context,
                                        sharing)));
  };
  line(fmt::format("as it is, {}", sharingOf(shape.kinds.front())),
       HeadSharing::AsIs);
  line("as MHA", HeadSharing::Mha);
  line("as MQA", HeadSharing::Mqa);
}

void printPlan(const PlanReport &report) {
  if (!report.plan) // an error tells why if it was asked for
    return row("memory",
               fmt::format("does not fit {}{}", report.memoryName,
                           report.memoryIsAsked ? "" : ": " + report.misfit));
  const MemoryPlan &plan = *report.plan;
  row("memory", fmt::format("{} leaves {} to keys and values",
                            report.memoryName, decimalBytes(plan.kvAvailable)));
  std::string requests = fmt::format(
      "{}, context {}", counted(plan.requests, "request"), plan.context);
  printOut("  {:<10}{:>11}   {}\n", "weights", decimalBytes(plan.weightBytes),
           report.exactArena ? "as an engine holds them" : report.precision);
  printOut("  {:<10}{:>11}   steps of {}, {}\n", "buffers",
           decimalBytes(plan.arenaBytes), counted(plan.stepRows, "row"),
           report.exactArena ? "as compiled" : "estimated");
  printOut("  {:<10}{:>11}   {} tokens for {}\n", "KV cache",
           decimalBytes(plan.kvBytes), plan.kvTokens(), requests);
  printOut("  {:<10}{:>11}\n", "together", decimalBytes(plan.totalBytes()));
  if (!plan.notice.empty())
    printOut("  {}\n", plan.notice);
  if (plan.groups.empty())
    return;
  row("requests", "that all of it could hold together");
  for (u32 length : lengthsUpTo(plan.context))
    printOut("  {:>9} of {} tokens\n", plan.requestsAvailable(length), length);
}

void printBandwidth(const PlanReport &report) {
  row("per token",
      fmt::format("at least, by bandwidth {:>11}{:>21}", "at first",
                  fmt::format("after {} tokens", report.context)));
  for (const DeviceBandwidth &device : report.devices) {
    auto time = [&](u64 tokens) {
      return 1e3 * runtime::secondsPerToken(report.bytesPerToken(tokens),
                                            device.bytesPerSecond);
    };
    printOut("  {:<10}{:>11.1f} GB/s{:>17.2f} ms{:>18.2f} ms\n", device.name,
             device.bytesPerSecond / 1e9, time(0), time(report.context));
  }
}

Json sharings(const PlanReport &report, u64 tokens) {
  auto bytes = [&](HeadSharing sharing) {
    return runtime::kvBytesOf(report.model.shape, report.kvDtype, tokens,
                              sharing);
  };
  return {{"as_is", bytes(HeadSharing::AsIs)},
          {"mha", bytes(HeadSharing::Mha)},
          {"mqa", bytes(HeadSharing::Mqa)}};
}

Json planJson(const MemoryPlan &plan, bool exactArena) {
  Json groups = Json::array(), requests = Json::array();
  for (size_t group = 0; group < plan.groups.size(); ++group)
    groups.push_back({{"window", plan.groups[group].window},
                      {"page_bytes", plan.groups[group].pageBytes},
                      {"pages", plan.pages[group]}});
  for (u32 length : lengthsUpTo(plan.context))
    requests.push_back({{"tokens", length},
                        {"requests", plan.requestsAvailable(length)},
                        {"requests_in_pools", plan.requestsOf(length)}});
  return {{"context", plan.context},
          {"requests", plan.requests},
          {"step_rows", plan.stepRows},
          {"weight_bytes", plan.weightBytes},
          {"arena_bytes", plan.arenaBytes},
          {"arena_is_exact", exactArena},
          {"kv_bytes", plan.kvBytes},
          {"total_bytes", plan.totalBytes()},
          {"kv_tokens", plan.kvTokens()},
          {"kv_available_bytes", plan.kvAvailable},
          {"kv_groups", groups},
          {"requests_that_fit", requests},
          {"notice", plan.notice}};
}

} // namespace

u64 PlanReport::bytesPerToken(u64 tokens) const {
  return weightBytesRead + runtime::kvBytesOf(model.shape, kvDtype, tokens);
}

void PlanReport::print() const {
  printModel(*this);
  printWeights(*this);
  printKv(*this);
  printPlan(*this);
  printBandwidth(*this);
}

Json PlanReport::json() const {
  const ModelShape &shape = model.shape;
  Json attention = Json::array(), limits = Json::array();
  for (const LayerKind &kind : shape.kinds)
    attention.push_back({{"layers", kind.layers},
                         {"window", kind.window},
                         {"heads", kind.heads},
                         {"kv_heads", kind.kvHeads},
                         {"head_dim", kind.headDim},
                         {"sharing", sharingOf(kind)}});
  Json weights = {{"as_is", model.weightBytes}};
  for (const auto &precision : runtime::weightPrecisions())
    weights[std::string(precision.name)] =
        runtime::bytesOfWeights(shape.parameters, precision.bits);
  for (const auto &precision : runtime::weightPrecisions())
    if (precision.formatBits != precision.bits) {
      std::string name(precision.format);
      for (char &c : name)
        c = char(std::tolower(u8(c)));
      weights[name] =
          runtime::bytesOfWeights(shape.parameters, precision.formatBits);
    }
  for (const DeviceBandwidth &device : devices)
    limits.push_back(
        {{"device", device.name},
         {"bytes_per_second", device.bytesPerSecond},
         {"ms_per_token", 1e3 * runtime::secondsPerToken(
                                    bytesPerToken(0), device.bytesPerSecond)},
         {"ms_per_token_at_context",
          1e3 * runtime::secondsPerToken(bytesPerToken(context),
                                         device.bytesPerSecond)}});
  return {{"source", source},
          {"name", shape.name},
          {"architecture", shape.architecture},
          {"parameters", shape.parameters},
          {"layers", shape.layers},
          {"hidden", shape.hidden},
          {"vocab", shape.vocab},
          {"context", shape.context},
          {"attention", attention},
          {"weights", weights},
          {"kv",
           {{"dtype", kvDtype},
            {"tokens", context},
            {"bytes_per_token", sharings(*this, 1)},
            {"bytes", sharings(*this, context)}}},
          {"memory", memoryName},
          {"fits", plan.has_value()},
          {"misfit", misfit},
          {"plan", plan ? planJson(*plan, exactArena) : Json()},
          {"weights_planned", precision},
          {"weight_bytes_per_token", weightBytesRead},
          {"bandwidth", limits}};
}
