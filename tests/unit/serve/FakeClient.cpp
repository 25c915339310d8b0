#include "tests/unit/serve/FakeClient.h"

#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::tests;

void FakeResponder::reply(runtime::http::Reply reply) {
  std::lock_guard lock(mutex);
  EXPECT_EQ(status, 0u) << "answered twice";
  status = reply.status;
  type = reply.contentType;
  body = std::move(reply.body);
  headers = std::move(reply.headers);
  isDone = true;
  changed.notify_all();
}

void FakeResponder::startStream(std::string_view contentType) {
  std::lock_guard lock(mutex);
  EXPECT_EQ(status, 0u) << "answered twice";
  status = 200;
  type = contentType;
  isStream = true;
}

void FakeResponder::write(std::string bytes) {
  std::lock_guard lock(mutex);
  EXPECT_TRUE(isStream && !isDone);
  EXPECT_FALSE(bytes.empty());
  body += bytes;
  writes.push_back(std::move(bytes));
  changed.notify_all();
}

void FakeResponder::finish() {
  std::lock_guard lock(mutex);
  EXPECT_TRUE(isStream && !isDone);
  isDone = true;
  changed.notify_all();
}

void FakeResponder::onGone(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex);
    if (!isGone) {
      gone = std::move(callback);
      return;
    }
  }
  callback();
}

bool FakeResponder::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, most, [&] { return isDone; });
}

bool FakeResponder::waitForWrites(size_t count) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::seconds(20),
                          [&] { return writes.size() >= count; });
}

void FakeResponder::leave() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex);
    isGone = true;
    callback.swap(gone);
  }
  if (callback)
    callback();
}

std::vector<json> Answer::events() const {
  EXPECT_EQ(type, "text/event-stream");
  std::vector<json> events;
  size_t at = 0;
  bool isClosed = false;
  while (at < body.size()) {
    size_t end = body.find("\n\n", at);
    std::string event = body.substr(at, end - at);
    EXPECT_NE(end, std::string::npos) << event;
    EXPECT_EQ(event.find('\n'), std::string::npos) << event;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(isClosed) << "after [DONE]: " << event;
    if (event == "data: [DONE]")
      isClosed = true;
    else
      events.push_back(json::parse(event.substr(6)));
    at = end == std::string::npos ? body.size() : end + 2;
  }
  EXPECT_TRUE(isClosed) << body;
  return events;
}

/// What a choice of an event or of a whole answer says.
static std::string textOf(const json &choice) {
  for (const char *name : {"message", "delta"})
    if (choice.contains(name))
      return choice[name].value("content", std::string());
  return choice.value("text", std::string());
}

static std::vector<json> choicesOf(const Answer &answer, u32 index) {
  std::vector<json> choices;
  auto take = [&](const json &object) {
    for (const json &choice : object.value("choices", json::array()))
      if (choice["index"] == index)
        choices.push_back(choice);
  };
  if (answer.type == "text/event-stream")
    for (const json &event : answer.events())
      take(event);
  else
    take(answer.parsed());
  return choices;
}

std::string Answer::text(u32 choice) const {
  std::string text;
  for (const json &part : choicesOf(*this, choice))
    text += textOf(part);
  return text;
}

std::string Answer::finish(u32 choice) const {
  std::string finish;
  for (const json &part : choicesOf(*this, choice)) {
    EXPECT_TRUE(finish.empty()) << "goes on after its end";
    if (part["finish_reason"].is_string())
      finish = part["finish_reason"];
  }
  return finish;
}

std::string Answer::header(const std::string &name) const {
  for (const auto &[key, value] : headers)
    if (key == name)
      return value;
  return "";
}

std::shared_ptr<FakeResponder> tests::begin(const runtime::http::Routes &routes,
                                            const std::string &method,
                                            const std::string &path,
                                            const std::string &body) {
  auto responder = std::make_shared<FakeResponder>();
  const runtime::http::Route *route = routes.find(method, path);
  EXPECT_NE(route, nullptr) << path;
  if (route)
    route->handler(
        {.method = method, .path = path, .query = "", .body = body, .id = "r1"},
        responder);
  return responder;
}

Answer tests::callRaw(const runtime::http::Routes &routes,
                      const std::string &method, const std::string &path,
                      const std::string &body) {
  auto responder = begin(routes, method, path, body);
  EXPECT_TRUE(responder->wait()) << "no answer to " << body.substr(0, 200);
  return {responder->status, responder->type, responder->body,
          responder->headers};
}

Answer tests::call(const runtime::http::Routes &routes, const std::string &path,
                   const json &body) {
  return callRaw(routes, "POST", path, body.dump());
}
