/// \file
/// What a call ends with instead of an answer.
#ifndef LATHE_RUNTIME_SERVE_APIERROR_H
#define LATHE_RUNTIME_SERVE_APIERROR_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"

#include <string>
#include <tl/expected.hpp>

namespace lathe::runtime::serve {

/// An error as HTTP knows it.
struct ApiError {
  u32 status = 400;
  std::string message;
  std::string code = {};  ///< Empty: none.
  std::string param = {}; ///< The parameter that is to blame; empty: none.
};

template <typename T> using ApiResult = tl::expected<T, ApiError>;

/// A wrong parameter.
inline tl::unexpected<ApiError> refuse(std::string param, std::string message,
                                       std::string code = "invalid_value") {
  return tl::unexpected<ApiError>(
      {400, std::move(message), std::move(code), std::move(param)});
}

/// An error of tokenizer, template or engine that a request has caused, or not.
inline ApiError toApiError(const Error &error, std::string param = {}) {
  bool isOurs =
      error.kind == ErrorKind::Internal || error.kind == ErrorKind::Environment;
  return {u32(isOurs ? 500 : 400), error.message, {}, std::move(param)};
}

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_APIERROR_H
