/// \file
/// Which handler answers which path, and who may ask.
#ifndef LATHE_RUNTIME_SERVE_HTTP_ROUTES_H
#define LATHE_RUNTIME_SERVE_HTTP_ROUTES_H

#include "runtime/serve/http/Http.h"

#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::http {

enum class Access {
  Key,         ///< Needs a key, if the server has any.
  PromptedKey, ///< Likewise, and a browser that has none asks its user for it.
  Open,        ///< Everybody's.
};

/// One entry of the table of routes.
struct Route {
  std::string method;
  std::string path; ///< Matched as a whole.
  Handler handler;
  Access access = Access::Key;
};

/// All routes of a server. Immutable once it serves.
class Routes {
public:
  /// Adds one; a method and path must not be there yet.
  void add(Route route);

  const std::vector<Route> &all() const { return routes; }

  /// The route of a method and path, or null. HEAD finds GET.
  const Route *find(std::string_view method, std::string_view path) const;

  /// Methods of a path, "GET, HEAD", for 405; empty if there is none.
  std::string allowed(std::string_view path) const;

private:
  std::vector<Route> routes;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_ROUTES_H
