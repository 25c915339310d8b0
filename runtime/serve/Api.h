/// \file
/// The API of a served model: OpenAI's, Ollama's, and what probes ask for.
#ifndef LATHE_RUNTIME_SERVE_API_H
#define LATHE_RUNTIME_SERVE_API_H

#include "runtime/api/TextModel.h"
#include "runtime/schedule/ServingEngine.h"
#include "runtime/serve/Observer.h"
#include "runtime/serve/http/Routes.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace lathe::runtime::serve {

/// A model as clients see it. Only isDraining changes once it is served.
struct ServedModel {
  std::shared_ptr<const TextModel> model;
  /// Of the same engine. Must outlive all answers: it ends them when it is
  /// destroyed.
  ServingEngine &engine;
  /// As clients call it; valid UTF-8.
  std::string name;
  /// What answers' bits depend on: the engine's hash and the ISA layer.
  std::string fingerprint;
  /// Seconds since 1970.
  i64 created = 0;
  /// May be null.
  std::shared_ptr<Observer> observer = nullptr;
  /// Longest time that an answer may take, its wait included; 0: any.
  std::chrono::nanoseconds requestTime{0};
  /// No further requests are taken; /readyz and /health say so.
  std::atomic<bool> isDraining = false;
};

/// Adds the routes: /v1/{chat/completions,completions,models,models/NAME},
/// /api/{generate,chat,tags,show,ps,version}, /tokenize, /detokenize,
/// /tokenizer_info, /livez (open to everybody), /readyz and /health. Handlers
/// hold a share of `model`.
void addApiRoutes(http::Routes &routes,
                  std::shared_ptr<const ServedModel> model);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_API_H
