#include "tests/unit/http/TestServer.h"

#include <fmt/format.h>
#include <stdexcept>

namespace lathe::tests {

using http::Request;
using http::Responder;

http::Routes testRoutes(http::Handler hold) {
  http::Routes routes;
  routes.add({.method = "GET",
              .path = "/hello",
              .handler =
                  [](const Request &, std::shared_ptr<Responder> to) {
                    to->reply({.body = "hello", .contentType = "text/plain"});
                  },
              .access = http::Access::Open});
  routes.add({.method = "GET",
              .path = "/page",
              .handler =
                  [](const Request &, std::shared_ptr<Responder> to) {
                    to->reply({.body = "page", .contentType = "text/plain"});
                  },
              .access = http::Access::PromptedKey});
  routes.add(
      {.method = "POST",
       .path = "/echo",
       .handler = [](const Request &request, std::shared_ptr<Responder> to) {
         to->reply({.body = request.body,
                    .headers = {{"x-method", request.method},
                                {"x-path", request.path},
                                {"x-query", request.query}}});
       }});
  routes.add(
      {.method = "GET",
       .path = "/id",
       .handler = [](const Request &request, std::shared_ptr<Responder> to) {
         to->reply({.body = request.id});
       }});
  routes.add({.method = "GET", .path = "/hold", .handler = hold});
  routes.add({.method = "POST", .path = "/hold", .handler = std::move(hold)});
  routes.add(
      {.method = "GET",
       .path = "/throws",
       .handler = [](const Request &, const std::shared_ptr<Responder> &) {
         throw std::runtime_error("a secret");
       }});
  routes.add(
      {.method = "GET",
       .path = "/forgets",
       .handler = [](const Request &, const std::shared_ptr<Responder> &) {}});
  return routes;
}

TestServer::TestServer(http::HttpOptions options) {
  options.log = [this](const http::AccessRecord &record) {
    std::lock_guard lock(mutex);
    lines.push_back(fmt::format(
        "{} {} {} {} {}", record.request.method, record.request.path,
        record.status, record.bytes, record.isComplete ? "whole" : "broken"));
    changed.notify_all();
  };
  server = http::HttpServer::listen(std::move(options)).value();
  server->serve(
      testRoutes([this](const Request &, std::shared_ptr<Responder> to) {
        to->onGone([this] {
          std::lock_guard lock(mutex);
          ++goneCount;
          changed.notify_all();
        });
        std::lock_guard lock(mutex);
        waiting.push_back(std::move(to));
        changed.notify_all();
      }));
}

std::shared_ptr<Responder> TestServer::held() {
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, Client::patience,
                        [this] { return !waiting.empty(); }))
    return nullptr;
  auto first = std::move(waiting.front());
  waiting.erase(waiting.begin());
  return first;
}

u32 TestServer::gone() const {
  std::lock_guard lock(mutex);
  return goneCount;
}

bool TestServer::waitForGone(u32 count, std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, most, [&] { return goneCount >= count; });
}

std::vector<std::string> TestServer::log() const {
  std::lock_guard lock(mutex);
  return lines;
}

bool TestServer::waitForLog(size_t count) const {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, Client::patience,
                          [&] { return lines.size() >= count; });
}

} // namespace lathe::tests
