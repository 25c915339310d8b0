/// \file
/// Who may ask what.
#ifndef LATHE_RUNTIME_SERVE_HTTP_ADMISSION_H
#define LATHE_RUNTIME_SERVE_HTTP_ADMISSION_H

#include "runtime/serve/http/ServerState.h"

#include <optional>

namespace lathe::runtime::http {

/// What becomes of a request, by its line and headers.
struct Admission {
  const Route *route = nullptr;      ///< Who answers it, or
  std::optional<Reply> refusal = {}; ///< 401, 403, 404 or 405.
};

Admission admit(const ServerState &server, const Request &request);

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_ADMISSION_H
