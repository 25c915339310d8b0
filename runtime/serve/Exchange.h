/// \file
/// A call under way: its requests in the engine on one side, a client that
/// waits for the answers on the other.
#ifndef LATHE_RUNTIME_SERVE_EXCHANGE_H
#define LATHE_RUNTIME_SERVE_EXCHANGE_H

#include "runtime/serve/Api.h"
#include "runtime/serve/Call.h"
#include "runtime/serve/Format.h"

#include <memory>

namespace lathe::runtime::serve {

/// Submits a call's prompts and sees to its answer: streamed or whole, or an
/// error. Returns at once. A client that goes away cancels them.
void startExchange(std::shared_ptr<const ServedModel> model, Call call,
                   std::unique_ptr<Format> format, const http::Request &request,
                   std::shared_ptr<http::Responder> responder);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_EXCHANGE_H
