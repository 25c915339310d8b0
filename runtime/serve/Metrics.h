/// \file
/// How the server does, as Prometheus collects it.
#ifndef LATHE_RUNTIME_SERVE_METRICS_H
#define LATHE_RUNTIME_SERVE_METRICS_H

#include "runtime/schedule/ServingEngine.h"
#include "runtime/serve/Observer.h"

#include <functional>
#include <memory>
#include <string>

namespace lathe::runtime::serve {

/// Counts requests and their times under the names, labels and bucket bounds
/// that vLLM's metrics have, with the prefix `lathe:`, so that what people
/// chart and alert on stays. Times of CPU-sized models are shorter than its
/// least bounds: finer ones stand before them. Each answer of a request counts
/// as one, its prompt once for all.
///
/// Any thread. A token costs the engine's thread one uncontended lock.
class Metrics : public Observer {
public:
  /// `modelName` is the label model_name. `stats` is asked in text().
  Metrics(std::string modelName, std::function<ServingStats()> stats);
  ~Metrics() override;

  std::shared_ptr<RequestObserver>
  onRequest(const ObservedRequest &request) override;
  void onError(std::string_view, std::string_view, u32,
               std::string_view) override {}

  /// All of them, in Prometheus' text format 0.0.4.
  std::string text() const;

private:
  struct Families;
  class Meter;
  class EngineValues;

  std::shared_ptr<Families> families; ///< Shared with the requests' meters.
  std::unique_ptr<EngineValues> engineValues;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_METRICS_H
