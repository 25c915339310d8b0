#include "codegen/SlowerPaths.h"

#include <algorithm>
#include <utility>

using namespace lathe::codegen;

void SlowerPaths::add(std::string place, std::string text) {
  // Those taken have been told with their count.
  auto known = std::find_if(
      paths.begin() + static_cast<std::ptrdiff_t>(taken), paths.end(),
      [&](const Path &path) { return path.text == text; });
  if (known != paths.end())
    ++known->more;
  else
    paths.push_back({std::move(place), std::move(text)});
}

std::vector<std::string> SlowerPaths::takeNew() {
  std::vector<std::string> lines;
  for (; taken < paths.size(); ++taken)
    lines.push_back(paths[taken].line());
  return lines;
}

std::string SlowerPaths::list() const {
  std::string list;
  for (const Path &path : paths)
    list += (list.empty() ? "" : "; ") + path.line();
  return list;
}

std::string SlowerPaths::Path::line() const {
  std::string line = (place.empty() ? "" : place + ": ") + text;
  if (more > 0)
    line += " (and " + std::to_string(more) + " more like it)";
  return line;
}
