#include "runtime/serve/http/Routes.h"

#include <cassert>

namespace lathe::runtime::http {

void Routes::add(Route route) {
  assert(route.path.starts_with('/') && "a path begins with a slash");
  for ([[maybe_unused]] const Route &other : routes)
    assert((other.method != route.method || other.path != route.path) &&
           "a route is added once");
  routes.push_back(std::move(route));
}

const Route *Routes::find(std::string_view method,
                          std::string_view path) const {
  const Route *get = nullptr;
  for (const Route &route : routes) {
    if (route.path != path)
      continue;
    if (route.method == method)
      return &route;
    if (route.method == "GET")
      get = &route;
  }
  return method == "HEAD" ? get : nullptr;
}

std::string Routes::allowed(std::string_view path) const {
  std::string methods;
  auto append = [&](std::string_view method) {
    methods += methods.empty() ? "" : ", ";
    methods += method;
  };
  for (const Route &route : routes) {
    if (route.path != path)
      continue;
    append(route.method);
    if (route.method == "GET" &&
        !find("HEAD", path)->method.starts_with("HEAD"))
      append("HEAD");
  }
  return methods;
}

} // namespace lathe::runtime::http
