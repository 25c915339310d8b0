#include "tools/lathe/CurvePlot.h"

#include "tools/lathe/Svg.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::tools::svg;

namespace {

// Pixels; the plot's area is what the margins leave.
constexpr f64 width = 760, height = 440;
constexpr f64 left = 70, right = 180, top = 76, bottom = 62;
constexpr f64 lineHeight = 17;

/// One axis: from 0 to past the largest value, in steps of 1, 2 or 5 times a
/// power of ten.
struct Axis {
  f64 step = 1;
  u32 steps = 1;
  f64 start = 0, length = 0; ///< Pixels; length is negative upwards.

  Axis(f64 largest, u32 mostSteps, f64 start, f64 length)
      : start(start), length(length) {
    if (largest > 0) {
      f64 power = std::pow(10, std::floor(std::log10(largest / mostSteps)));
      for (f64 factor : {1, 2, 5, 10})
        if (step = factor * power; largest <= step * mostSteps)
          break;
      steps = std::max(1u, u32(std::ceil(largest / step - 1e-9)));
    }
  }

  f64 at(f64 value) const { return start + length * value / (step * steps); }

  std::string label(u32 tick) const {
    int digits = std::max(0, -int(std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}f}", tick * step, digits);
  }
};

std::string axesSvg(const CurvePlot &plot, const Axis &x, const Axis &y) {
  std::string out =
      fmt::format("<g stroke=\"{0}\" stroke-opacity=\"0.3\">\n", textColour);
  for (u32 tick = 0; tick <= y.steps; ++tick)
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke-opacity=\"{}\"/>\n", left,
        y.at(tick * y.step), width - right, tick == 0 ? 1 : 0.3);
  for (u32 tick = 0; tick <= x.steps; ++tick)
    out += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke-opacity=\"1\"/>\n",
                       x.at(tick * x.step), height - bottom);
  out += "</g>\n";
  for (u32 tick = 0; tick <= y.steps; ++tick)
    out += textAt(left - 8, y.at(tick * y.step) + 4, "text-anchor=\"end\"",
                  y.label(tick));
  for (u32 tick = 0; tick <= x.steps; ++tick)
    out += textAt(x.at(tick * x.step), height - bottom + 20,
                  "text-anchor=\"middle\"", x.label(tick));
  out += textAt((left + width - right) / 2, height - 14,
                "text-anchor=\"middle\"", plot.xLabel);
  f64 middle = (top + height - bottom) / 2;
  out += textAt(18, middle,
                fmt::format("text-anchor=\"middle\" "
                            "transform=\"rotate(-90 18 {:.1f})\"",
                            middle),
                plot.yLabel);
  return out;
}

/// Where the curves' labels go: at their ends, but not over one another.
std::vector<f64> labelPlaces(const CurvePlot &plot, const Axis &y) {
  std::vector<size_t> order(plot.curves.size());
  std::iota(order.begin(), order.end(), 0);
  auto end = [&](size_t i) { return y.at(plot.curves[i].points.back().y); };
  // From the lowest on the page up.
  std::ranges::sort(order, [&](size_t a, size_t b) { return end(a) > end(b); });
  std::vector<f64> places(order.size());
  f64 lowest = height - bottom - lineHeight;
  for (size_t i : order) {
    places[i] = std::min(end(i), lowest);
    lowest = places[i] - 2.2 * lineHeight;
  }
  return places;
}

} // namespace

std::string CurvePlot::toSvg() const {
  f64 mostX = 0, mostY = 0;
  for (const Curve &curve : curves)
    for (Point point : curve.points) {
      mostX = std::max(mostX, point.x);
      mostY = std::max(mostY, point.y);
    }
  Axis x(mostX, 8, left, width - left - right);
  Axis y(mostY, 6, height - bottom, -(height - top - bottom));

  std::string out = documentStart(width, height, title);
  out += textAt(left, 26, "font-size=\"17\" font-weight=\"bold\"", title);
  out += textAt(left, 48, "", note);
  out += axesSvg(*this, x, y);

  std::vector<f64> places = labelPlaces(*this, y);
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve &curve = curves[i];
    out += fmt::format("<g fill=\"{}\">\n", colours[i % colours.size()]);
    std::string path;
    for (Point point : curve.points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                          x.at(point.x), y.at(point.y));
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" "
                       "stroke-width=\"2.5\" stroke-linejoin=\"round\"/>\n",
                       path, colours[i % colours.size()]);
    for (Point point : curve.points)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n",
                         x.at(point.x), y.at(point.y));
    f64 labelX = x.at(curve.points.back().x) + 12;
    out += textAt(labelX, places[i] + 1, "font-weight=\"bold\"", curve.name);
    out += textAt(labelX, places[i] + lineHeight, "",
                  shortNumber(curve.points.back().y) + " " + yUnit);
    out += "</g>\n";
  }
  return out + "</svg>\n";
}
