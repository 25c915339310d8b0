/// \file
/// A client of routes without sockets.
#ifndef LATHE_TESTS_UNIT_SERVE_FAKECLIENT_H
#define LATHE_TESTS_UNIT_SERVE_FAKECLIENT_H

#include "runtime/serve/http/Routes.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lathe::tests {

using nlohmann::json;

/// Keeps what a handler answers.
class FakeResponder : public runtime::http::Responder {
public:
  void reply(runtime::http::Reply reply) override;
  void startStream(std::string_view contentType) override;
  void write(std::string bytes) override;
  void finish() override;
  void onGone(std::function<void()> gone) override;

  /// Waits until the answer is complete; false: it took too long.
  bool wait(std::chrono::milliseconds most = std::chrono::seconds(20));
  /// Waits until so many writes have come.
  bool waitForWrites(size_t count);
  /// The client goes away.
  void leave();

  u32 status = 0; ///< 0: no answer yet.
  std::string type;
  std::string body;
  std::vector<runtime::http::Header> headers;
  std::vector<std::string> writes;
  bool isStream = false;
  bool isDone = false;

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> gone;
  bool isGone = false;
};

/// A complete answer.
struct Answer {
  u32 status = 0;
  std::string type, body;
  std::vector<runtime::http::Header> headers;

  json parsed() const { return json::parse(body); }
  /// The JSON of each event; the last one must be [DONE].
  std::vector<json> events() const;
  /// Texts of a choice over all events, or of the whole answer.
  std::string text(u32 choice = 0) const;
  std::string finish(u32 choice = 0) const;
  std::string header(const std::string &name) const;
};

/// Begins a call.
std::shared_ptr<FakeResponder> begin(const runtime::http::Routes &routes,
                                     const std::string &method,
                                     const std::string &path,
                                     const std::string &body = "");

/// Calls and waits for the answer.
Answer call(const runtime::http::Routes &routes, const std::string &path,
            const json &body);
Answer callRaw(const runtime::http::Routes &routes, const std::string &method,
               const std::string &path, const std::string &body = "");

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SERVE_FAKECLIENT_H
