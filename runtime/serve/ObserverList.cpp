#include "runtime/serve/ObserverList.h"

namespace lathe::runtime::serve {

namespace {

class RequestList : public RequestObserver {
public:
  using Members = std::vector<std::shared_ptr<RequestObserver>>;

  explicit RequestList(Members members) : members(std::move(members)) {}

  void onToken(u32 branch, i32 token, Instant at) override {
    for (const auto &member : members)
      member->onToken(branch, token, at);
  }

  void onText(u32 branch, std::string_view text) override {
    for (const auto &member : members)
      member->onText(branch, text);
  }

  void onEnd(u32 branch, const End &end, const RequestFacts &facts) override {
    for (const auto &member : members)
      member->onEnd(branch, end, facts);
  }

private:
  Members members;
};

class List : public Observer {
public:
  using Members = std::vector<std::shared_ptr<Observer>>;

  explicit List(Members members) : members(std::move(members)) {}

  std::shared_ptr<RequestObserver>
  onRequest(const ObservedRequest &request) override {
    RequestList::Members interested;
    for (const auto &member : members)
      if (auto observer = member->onRequest(request))
        interested.push_back(std::move(observer));
    if (interested.empty())
      return nullptr;
    return std::make_shared<RequestList>(std::move(interested));
  }

  void onError(std::string_view callId, std::string_view endpoint, u32 status,
               std::string_view message) override {
    for (const auto &member : members)
      member->onError(callId, endpoint, status, message);
  }

private:
  Members members;
};

} // namespace

std::shared_ptr<Observer>
observeAll(std::vector<std::shared_ptr<Observer>> observers) {
  std::erase(observers, nullptr);
  return std::make_shared<List>(std::move(observers));
}

} // namespace lathe::runtime::serve
