/// \file
/// Copies of seeded models in which something is changed.
#ifndef LATHE_TESTS_E2E_SEEDED_EDITMODEL_H
#define LATHE_TESTS_E2E_SEEDED_EDITMODEL_H

#include "frontend/gguf/GgufFile.h"
#include "tests/unit/support/GgufWriter.h"
#include "tests/unit/support/TempDir.h"

#include <functional>
#include <string>
#include <string_view>

namespace lathe::tests {

/// What changes while a model is copied.
struct Edit {
  /// Keys and tensors that are left out.
  std::function<bool(std::string_view)> drop = [](std::string_view) {
    return false;
  };
  /// Adds to the copy.
  std::function<void(GgufWriter &, const frontend::GgufFile &)> add =
      [](GgufWriter &, const frontend::GgufFile &) {};
};

/// Adds a tensor of another file, with its values in F32 if `asF32`.
void putTensor(GgufWriter &writer, std::string_view name,
               const frontend::GgufTensor &tensor, bool asF32 = false);

/// Copies a seeded model with an edit; returns the path. Throws if the model
/// cannot be read.
std::string copyModel(const TempDir &temp, const std::string &name,
                      const Edit &edit);

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_SEEDED_EDITMODEL_H
