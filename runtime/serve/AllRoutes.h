/// \file
/// Everything that lathe serve answers.
#ifndef LATHE_RUNTIME_SERVE_ALLROUTES_H
#define LATHE_RUNTIME_SERVE_ALLROUTES_H

#include "runtime/serve/Api.h"
#include "runtime/serve/Metrics.h"
#include "runtime/serve/http/Routes.h"

#include <memory>

namespace lathe::runtime::serve {

/// The API, the page and the metrics. Only /livez is open to everybody.
http::Routes allRoutes(std::shared_ptr<const ServedModel> model,
                       std::shared_ptr<const Metrics> metrics);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_ALLROUTES_H
