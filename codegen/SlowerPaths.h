/// \file
/// The slower paths that a compilation chose, as its passes' remarks tell them.
#ifndef LATHE_CODEGEN_SLOWERPATHS_H
#define LATHE_CODEGEN_SLOWERPATHS_H

#include <cstddef>
#include <string>
#include <vector>

namespace lathe::codegen {

/// Remarks in their order. Those that differ only in their place, as the same
/// choice in each layer of a model, are one: the first, with a count. One
/// compilation, one thread.
class SlowerPaths {
public:
  /// A remark. `place` names the model's tensors; it may be empty.
  void add(std::string place, std::string text);

  /// One line each for the remarks since the last call.
  std::vector<std::string> takeNew();

  bool empty() const { return paths.empty(); }

  /// All of them in one line.
  std::string list() const;

private:
  struct Path {
    std::string place, text;
    size_t more = 0; ///< Remarks with the same text elsewhere.

    std::string line() const;
  };

  std::vector<Path> paths;
  size_t taken = 0;
};

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_SLOWERPATHS_H
