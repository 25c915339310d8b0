#include "runtime/serve/http/Origin.h"

namespace lathe::runtime::http {

/// Whether an Origin ("http://host:port", or "null") is the server that a Host
/// header names. A scheme's own port may be there or not.
static bool isOwn(std::string_view origin, std::string_view host) {
  struct Scheme {
    std::string_view prefix, port;
  };
  for (Scheme scheme : {Scheme{"http://", ":80"}, Scheme{"https://", ":443"}}) {
    if (!equalsNoCase(origin.substr(0, scheme.prefix.size()), scheme.prefix))
      continue;
    origin.remove_prefix(scheme.prefix.size());
    for (std::string_view *name : {&origin, &host})
      if (name->ends_with(scheme.port))
        name->remove_suffix(scheme.port.size());
    return !host.empty() && equalsNoCase(origin, host);
  }
  return false;
}

bool isFromOtherPage(const Request &request) {
  for (const auto &[name, value] : request.headers) {
    if (equalsNoCase(name, "origin") && !isOwn(value, request.header("host")))
      return true;
    // "none" is a person's doing: an address typed in, a bookmark.
    if (equalsNoCase(name, "sec-fetch-site") && value != "same-origin" &&
        value != "none")
      return true;
  }
  return false;
}

} // namespace lathe::runtime::http
