#include "runtime/support/Quote.h"
#include "tools/lathe/StepReport.h"
#include "tools/lathe/Svg.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::tools::svg;
using runtime::displayPath;

namespace {

// Pixels; the plot's area is what the margins leave.
constexpr f64 width = 960, height = 520;
constexpr f64 left = 76, right = 370, top = 76, bottom = 62;
constexpr f64 lineHeight = 17;

struct Point {
  std::string name;
  f64 x, y; ///< Operations per byte and per second.
  bool isInteger;
};

/// A logarithmic axis over whole powers of ten.
struct LogAxis {
  int low, high;     ///< Powers of ten.
  f64 start, length; ///< Pixels; length is negative upwards.

  LogAxis(f64 least, f64 most, f64 start, f64 length)
      : low(int(std::floor(std::log10(least)))),
        high(std::max(low + 1, int(std::ceil(std::log10(most) - 1e-9)))),
        start(start), length(length) {}
  f64 at(f64 value) const {
    return start + length * (std::log10(value) - low) / (high - low);
  }
};

std::vector<Point> pointsOf(const StepReport &report) {
  std::vector<Point> points;
  for (const StepRow &row : report.kernels)
    if (row.cost.ops() != 0 && row.cost.bytes() != 0 && row.time.slowest > 0)
      points.push_back({fmt::format("{} ({:.0f} %)", displayPath(row.summary),
                                    row.share() * 100),
                        f64(row.cost.ops()) / f64(row.cost.bytes()),
                        f64(row.cost.ops()) / row.time.slowest,
                        row.cost.int8Ops != 0});
  return points;
}

std::string powerLabel(int power) {
  constexpr const char *units[] = {"", "k", "M", "G", "T", "P"};
  if (power < 0)
    return fmt::format("{:.{}f}", std::pow(10, power), -power);
  return fmt::format("{:.0f}{}", std::pow(10, power % 3),
                     units[std::min(power / 3, 5)]);
}

std::string axesSvg(const LogAxis &x, const LogAxis &y) {
  std::string lines, labels;
  for (int power = y.low; power <= y.high; ++power) {
    f64 at = y.at(std::pow(10, power));
    lines += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left, at,
                         width - right);
    labels +=
        textAt(left - 8, at + 4, "text-anchor=\"end\"", powerLabel(power));
  }
  for (int power = x.low; power <= x.high; ++power) {
    f64 at = x.at(std::pow(10, power));
    lines += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", at, top,
                         height - bottom);
    labels += textAt(at, height - bottom + 20, "text-anchor=\"middle\"",
                     powerLabel(power));
  }
  f64 middle = (top + height - bottom) / 2;
  labels += textAt((left + width - right) / 2, height - 14,
                   "text-anchor=\"middle\"", "operations per byte");
  labels += textAt(18, middle,
                   fmt::format("text-anchor=\"middle\" "
                               "transform=\"rotate(-90 18 {:.1f})\"",
                               middle),
                   "operations per second");
  return fmt::format("<g stroke=\"{}\" stroke-opacity=\"0.2\">\n{}</g>\n",
                     textColour, lines) +
         labels;
}

/// The slope of the memory and the two levels that it leads to.
std::string roofsSvg(const StepLimits &limits, const LogAxis &x,
                     const LogAxis &y) {
  std::string out;
  f64 leastX = std::pow(10, x.low), mostX = std::pow(10, x.high);
  f64 leastY = std::pow(10, y.low);
  f64 from = std::max(leastX, leastY / limits.bandwidth);
  struct Roof {
    const char *name, *colour;
    f64 ops;
  };
  std::vector<Roof> roofs = {{"int8", colours[1], limits.int8Ops},
                             {"f32", colours[2], limits.f32Ops}};
  if (limits.multipliesBf16())
    roofs.push_back({"bf16", colours[2], limits.bf16Ops});
  for (const Roof &roof : roofs) {
    f64 knee = std::clamp(roof.ops / limits.bandwidth, from, mostX);
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}\" fill=\"none\" "
        "stroke=\"{}\" stroke-width=\"2\" stroke-opacity=\"0.7\"/>\n",
        x.at(from), y.at(from * limits.bandwidth), x.at(knee),
        y.at(std::min(roof.ops, knee * limits.bandwidth)), x.at(mostX),
        roof.colour);
    if (knee < mostX)
      out += textAt(
          x.at(mostX) - 4, y.at(roof.ops) - 6,
          fmt::format("text-anchor=\"end\" fill=\"{}\"", roof.colour),
          fmt::format("{} {} Gop/s", roof.name, shortNumber(roof.ops / 1e9)));
  }
  f64 named = from * std::pow(10, 0.15);
  return out + textAt(x.at(named) + 14, y.at(named * limits.bandwidth) + 10, "",
                      fmt::format("memory {} GB/s",
                                  shortNumber(limits.bandwidth / 1e9)));
}

/// Points are numbered; the names stand beside the plot, by number.
std::string pointsSvg(const std::vector<Point> &points, const LogAxis &x,
                      const LogAxis &y) {
  std::string out;
  std::vector<std::pair<f64, f64>> taken;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point &point = points[i];
    const char *colour = point.isInteger ? colours[1] : colours[2];
    f64 atX = x.at(point.x), atY = y.at(point.y);
    // Points that nearly coincide have their numbers beside one another.
    f64 textX = atX + 7, textY = atY + 4;
    auto isTaken = [&](auto place) {
      return std::abs(place.first - textX) < 14 &&
             std::abs(place.second - textY) < 12;
    };
    while (std::ranges::any_of(taken, isTaken))
      textX += 14;
    taken.emplace_back(textX, textY);
    std::string number = std::to_string(i + 1);
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" "
                       "fill=\"{}\"/>\n",
                       atX, atY, colour);
    out +=
        textAt(textX, textY,
               fmt::format("font-weight=\"bold\" fill=\"{}\"", colour), number);
    f64 line = top + 8 + f64(i) * (lineHeight + 3);
    out += textAt(width - right + 34, line,
                  fmt::format("text-anchor=\"end\" font-weight=\"bold\" "
                              "fill=\"{}\"",
                              colour),
                  number);
    out += textAt(width - right + 42, line, "font-size=\"12\"", point.name);
  }
  return out;
}

} // namespace

std::string tools::rooflineSvg(const StepReport &report) {
  const StepLimits &limits = report.limits;
  std::vector<Point> points = pointsOf(report);
  f64 leastX = 1, mostX = 2 * limits.int8Ops / limits.bandwidth,
      leastY = limits.bandwidth, mostY = 2 * limits.int8Ops;
  for (const Point &point : points) {
    leastX = std::min(leastX, point.x);
    mostX = std::max(mostX, point.x);
    leastY = std::min(leastY, point.y);
    mostY = std::max(mostY, point.y);
  }
  LogAxis x(leastX, mostX, left, width - left - right);
  LogAxis y(leastY, mostY, height - bottom, -(height - top - bottom));
  std::string title = fmt::format(
      "Roofline, {}",
      displayPath(std::filesystem::path(report.model).filename().string()));
  std::string out = documentStart(width, height, title);
  out += textAt(left, 26, "font-size=\"17\" font-weight=\"bold\"", title);
  out += textAt(
      left, 48, "",
      fmt::format("{}, {}; {} of {} behind {}, {} tokens/s",
                  displayPath(report.cpu.substr(0, report.cpu.find(" ("))),
                  counted(report.threads, "thread"),
                  counted(report.sequences, "sequence"),
                  counted(report.rows, "row"), counted(report.context, "token"),
                  shortNumber(report.tokensPerSecond())));
  out += axesSvg(x, y);
  out += roofsSvg(limits, x, y);
  out += pointsSvg(points, x, y);
  return out + "</svg>\n";
}
