/// \file
/// A plot of a few curves as an SVG image.
#ifndef LATHE_TOOLS_LATHE_CURVEPLOT_H
#define LATHE_TOOLS_LATHE_CURVEPLOT_H

#include "kernels/abi/Types.h"

#include <string>
#include <vector>

namespace lathe::tools {

/// Both axes are linear and start at 0; values are >= 0 and finite. Texts are
/// UTF-8 without control characters (runtime::displayPath makes them so).
struct CurvePlot {
  struct Point {
    f64 x, y;
  };
  struct Curve {
    std::string name;          ///< Shown at the curve's end, with its last y.
    std::vector<Point> points; ///< By increasing x; at least one.
  };
  std::string title;
  std::string note; ///< Below the title: how it was measured.
  std::string xLabel;
  std::string yLabel; ///< With the unit.
  std::string yUnit;  ///< Behind the value at a curve's end.
  std::vector<Curve> curves;

  /// A stand-alone SVG document. It has no background, and colours that can be
  /// read on a light and on a dark page.
  std::string toSvg() const;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_CURVEPLOT_H
