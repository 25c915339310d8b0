#include "runtime/serve/AllRoutes.h"
#include "runtime/serve/Site.h"

namespace lathe::runtime::serve {

http::Routes allRoutes(std::shared_ptr<const ServedModel> model,
                       std::shared_ptr<const Metrics> metrics) {
  http::Routes routes;
  addApiRoutes(routes, std::move(model));
  addMetricsRoute(routes, std::move(metrics));
  addPageRoute(routes);
  return routes;
}

} // namespace lathe::runtime::serve
