/// \file
/// The error type of everything that is not MLIR code: runtime, frontend
/// readers and tools. No exception crosses a library boundary; a function that
/// can fail for a reason outside the program returns Result<T>.
#ifndef LATHE_RUNTIME_SUPPORT_RESULT_H
#define LATHE_RUNTIME_SUPPORT_RESULT_H

#include <fmt/format.h>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace lathe::runtime {

/// What kind of thing went wrong; decides exit codes and HTTP statuses.
enum class ErrorKind {
  InvalidInput, ///< A file, request or option is malformed.
  NotFound,     ///< A named file, tensor or option does not exist.
  Unsupported,  ///< Well formed, but outside what Lathe can do.
  Exhausted,    ///< Memory, disk, pages or a stated budget ran out.
  Environment,  ///< The machine lacks something: CPU feature, library, rights.
  Untrusted,    ///< Code whose origin the user has not accepted.
  Internal,     ///< A bug in Lathe.
};

/// One message for a person: what was wrong, where, and what to do.
struct Error {
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
};

template <typename T> using Result = tl::expected<T, Error>;

/// Makes an unexpected result: `return fail(ErrorKind::InvalidInput, "{}: …")`.
template <typename... Args>
tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format,
                           Args &&...args) {
  return tl::unexpected<Error>(
      Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

/// Passes an error of another Result on, with where it happened in front.
template <typename T>
tl::unexpected<Error> failFrom(const Result<T> &other,
                               const std::string &where = {}) {
  Error error = other.error();
  if (!where.empty())
    error.message = where + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_RESULT_H
