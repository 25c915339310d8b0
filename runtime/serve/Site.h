/// \file
/// What the server shows besides its API: a page for people, and its metrics.
#ifndef LATHE_RUNTIME_SERVE_SITE_H
#define LATHE_RUNTIME_SERVE_SITE_H

#include "runtime/serve/Metrics.h"
#include "runtime/serve/http/Routes.h"

#include <memory>

namespace lathe::runtime::serve {

/// GET /: the page of runtime/serve/page, in one piece. What it shows it asks
/// of other routes, to which the browser adds the key that it has asked its
/// user for. It loads nothing from elsewhere, and its content security policy
/// allows nothing but its own script and this server.
void addPageRoute(http::Routes &routes);

/// GET /metrics: Metrics::text().
void addMetricsRoute(http::Routes &routes,
                     std::shared_ptr<const Metrics> metrics);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_SITE_H
