/// \file
/// The file of a command's --svg option.
#ifndef LATHE_TOOLS_LATHE_PLOTFILE_H
#define LATHE_TOOLS_LATHE_PLOTFILE_H

#include "runtime/support/AtomicFile.h"
#include "runtime/support/Result.h"

#include <optional>
#include <string>

namespace lathe::tools {

/// A plot that is written at the end of a measurement, to a path that is tried
/// before it. Without commit() nothing changes.
class PlotFile {
public:
  /// `path` may be empty: no plot. `model` is what the command reads. Errors:
  /// those of AtomicFile::create; InvalidInput (the path is the model's).
  static runtime::Result<PlotFile> open(const std::string &path,
                                        const std::string &model);

  explicit operator bool() const { return file.has_value(); }

  /// Errors: those of AtomicFile.
  runtime::Result<void> save(const std::string &svg);

private:
  std::optional<runtime::AtomicFile> file;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_PLOTFILE_H
