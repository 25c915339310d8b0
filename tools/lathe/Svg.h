/// \file
/// What the plots have in common: colours and pieces of SVG.
#ifndef LATHE_TOOLS_LATHE_SVG_H
#define LATHE_TOOLS_LATHE_SVG_H

#include "kernels/abi/Types.h"

#include <array>
#include <string>
#include <string_view>

namespace lathe::tools::svg {

// Contrast of 4:1 or more to both white and #0d1117: images have no background.
inline constexpr const char *textColour = "#6e7781";
inline constexpr std::array colours = {"#d1552c", "#2f7fd0", "#388a4b",
                                       "#9a62c7"};

/// Text as the content of an element or attribute.
std::string escaped(std::string_view text);

/// The start of a stand-alone document, in pixels, with a title for readers
/// that do not see it; the end is "</svg>\n".
std::string documentStart(f64 width, f64 height, std::string_view title);

/// A line of text at a place; `attributes` as in SVG, or "".
std::string textAt(f64 x, f64 y, std::string_view attributes,
                   std::string_view text);

/// Three digits or so: "0.25", "12.5", "371".
std::string shortNumber(f64 value);

} // namespace lathe::tools::svg

#endif // LATHE_TOOLS_LATHE_SVG_H
