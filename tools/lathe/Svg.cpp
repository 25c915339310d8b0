#include "tools/lathe/Svg.h"

#include <fmt/format.h>

using namespace lathe;
using namespace lathe::tools;

std::string svg::escaped(std::string_view text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string svg::documentStart(f64 width, f64 height, std::string_view title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" fill=\"{2}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<title>{3}</title>\n",
      width, height, textColour, escaped(title));
}

std::string svg::textAt(f64 x, f64 y, std::string_view attributes,
                        std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" {}>{}</text>)"
                     "\n",
                     x, y, attributes, escaped(text));
}

std::string svg::shortNumber(f64 value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}
