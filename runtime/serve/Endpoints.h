/// \file
/// The families of routes that make up the API, and what they have in common.
#ifndef LATHE_RUNTIME_SERVE_ENDPOINTS_H
#define LATHE_RUNTIME_SERVE_ENDPOINTS_H

#include "runtime/serve/Api.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/Format.h"

#include <memory>
#include <string>

namespace lathe::runtime::serve {

using SharedModel = std::shared_ptr<const ServedModel>;
using SharedResponder = std::shared_ptr<http::Responder>;

/// /v1/…
void addOpenAiRoutes(http::Routes &routes, const SharedModel &model);
/// /api/…
void addOllamaRoutes(http::Routes &routes, const SharedModel &model);
/// /tokenize, /detokenize, /tokenizer_info
void addTokenRoutes(http::Routes &routes, const SharedModel &model);
/// /livez, /readyz, /health
void addProbeRoutes(http::Routes &routes, const SharedModel &model);

/// {"error":{"message","type","param","code"}}
http::Reply openAiError(const ApiError &error);

/// {"error":"…"}
http::Reply ollamaError(const ApiError &error);

/// Replies with an error, and tells the observer.
void replyError(const ServedModel &model, std::string_view callId,
                std::string_view endpoint, http::Responder &responder,
                const ApiError &error, ErrorShape shape);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_ENDPOINTS_H
