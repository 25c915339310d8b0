#include "runtime/serve/http/Connection.h"
#include "runtime/serve/http/Admission.h"
#include "runtime/serve/http/ErrorReply.h"
#include "runtime/serve/http/Framing.h"
#include "runtime/serve/http/RequestId.h"
#include "runtime/serve/http/RequestParser.h"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

namespace lathe::runtime::http {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Timer =
    asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

/// What a client may send ahead while it waits for an answer. Then it is not
/// read from any more, and its leaving is asked for instead.
static constexpr size_t aheadBytes = 64 << 10;
static constexpr std::chrono::milliseconds watchInterval{50};

/// How long a client that is refused is listened to after the answer: closing
/// on unread bytes would reset the connection and could destroy the answer.
static constexpr std::chrono::seconds lingerTime{2};

namespace {

/// Takes a connection off the list, as the last member to go.
struct Listed {
  std::shared_ptr<ServerState> server;
  Connection *connection;
  ~Listed() { server->connections.remove(connection); }
};

class ServedConnection final
    : public Connection,
      public std::enable_shared_from_this<ServedConnection> {
public:
  ServedConnection(asio::io_context &loop, int handle,
                   std::shared_ptr<ServerState> given)
      : listed{std::move(given), this}, server(*listed.server), loop(loop),
        socket(loop), timer(loop), watchTimer(loop),
        parser(server.options.limits) {
    error_code ignored;
    // The family only names the protocol; the handle is what it is.
    socket.assign(asio::ip::tcp::v4(), handle, ignored);
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void wake() override {
    asio::post(loop, [self = shared_from_this()] { self->flush(); });
  }
  void drain() override {
    asio::post(loop, [self = shared_from_this()] { self->drainNow(); });
  }
  void abort() override {
    asio::post(loop, [self = shared_from_this()] { self->abortNow(); });
  }

  void begin(bool isOverLimit);

private:
  enum class Phase {
    Idle,      ///< Nothing of a request is there.
    Reading,   ///< A part of one is.
    Answering, ///< `answer` is being made or sent.
    Lingering, ///< All is said; what still comes is thrown away.
    Closed,
  };

  const HttpLimits &limits() const { return server.options.limits; }

  void read();
  void onRead(error_code error, size_t count);
  void watch();
  void onPeerClosed(bool isOrderly);

  void advance();
  bool judge();
  void dispatch();
  void respond(Reply reply);
  void beginAnswer();

  void flush();
  void write();
  void onWritten(error_code error, size_t count);
  void completeAnswer();

  void setDeadline(Clock::duration after);
  void clearDeadline() { due = Clock::time_point::max(); }
  void armTimer();
  void onDeadline();
  int unacknowledged();

  void drainNow();
  void abortNow(bool resets = false);
  void close(bool resets = false);
  void report(bool isComplete);

  const Listed listed;
  ServerState &server;
  asio::io_context &loop;
  Socket socket;

  Timer timer;
  bool isTimerArmed = false;
  Clock::time_point due = Clock::time_point::max();
  Timer watchTimer;
  bool isWatching = false;

  Phase phase = Phase::Idle;
  std::array<char, 16 << 10> received;
  std::string inbox; ///< Received, not parsed.
  bool isReading = false;
  bool hasPeerClosed = false;

  RequestParser parser;
  bool isJudged = false; ///< This request's headers have been.
  const Route *route = nullptr;

  std::shared_ptr<Answer> answer;
  std::optional<Framing> framing;
  bool keepsAlive = false; ///< After this answer.
  bool isAllFramed = false;
  Clock::time_point answerBegan;

  std::string out; ///< Being sent, from `sent` on.
  size_t sent = 0;
  int heldByKernel = 0; ///< Bytes, when it last took some.
};

void ServedConnection::begin(bool isOverLimit) {
  if (phase == Phase::Closed)
    return;
  if (server.isDraining)
    return close();
  if (isOverLimit)
    return respond(errorReply(
        503, "the server has as many connections as it can; try again later",
        "too_many_connections"));
  setDeadline(limits().headerTime);
  read();
}

// Reading.

void ServedConnection::read() {
  if (isReading || hasPeerClosed || phase == Phase::Closed)
    return;
  if (phase == Phase::Answering && inbox.size() >= aheadBytes)
    return watch();
  isReading = true;
  socket.async_read_some(
      asio::buffer(received),
      [self = shared_from_this()](error_code error, size_t count) {
        self->onRead(error, count);
      });
}

void ServedConnection::onRead(error_code error, size_t count) {
  isReading = false;
  if (phase == Phase::Closed)
    return;
  if (error)
    return onPeerClosed(error == asio::error::eof);
  if (phase != Phase::Lingering) {
    inbox.append(received.data(), count);
    advance();
  }
  read();
}

/// Looks now and then whether a client is still there whose bytes are not read.
void ServedConnection::watch() {
  if (std::exchange(isWatching, true))
    return;
  watchTimer.expires_after(watchInterval);
  watchTimer.async_wait([self = shared_from_this()](error_code) {
    self->isWatching = false;
    if (self->phase != Phase::Answering || self->isReading)
      return;
    pollfd state{self->socket.native_handle(), POLLRDHUP, 0};
    if (::poll(&state, 1, 0) > 0) {
      self->hasPeerClosed = true;
      return self->onPeerClosed((state.revents & (POLLERR | POLLHUP)) == 0);
    }
    self->read();
  });
}

void ServedConnection::onPeerClosed(bool isOrderly) {
  hasPeerClosed = true;
  // What has been given already is still sent: the client may have closed only
  // its own side.
  if (phase == Phase::Answering && isOrderly && answer->hasEnded())
    return;
  abortNow();
}

// From bytes to requests.

void ServedConnection::advance() {
  using Stage = RequestParser::Stage;
  while ((phase == Phase::Idle || phase == Phase::Reading) && !inbox.empty()) {
    size_t used = parser.parse(inbox);
    inbox.erase(0, used);
    Stage stage = parser.stage();
    if (stage == Stage::Bad)
      return respond(errorReply(parser.refusal().status,
                                parser.refusal().message, "bad_request"));
    if (stage == Stage::Headers && phase == Phase::Idle) {
      phase = Phase::Reading;
      setDeadline(limits().headerTime);
    }
    if (stage == Stage::Body || stage == Stage::Done)
      if (!judge())
        return;
    if (stage == Stage::Done)
      return dispatch();
    if (used == 0)
      break;
  }
  if (hasPeerClosed && (phase == Phase::Idle || phase == Phase::Reading))
    close();
}

/// Decides by the headers, once per request. False: it has been refused.
bool ServedConnection::judge() {
  if (std::exchange(isJudged, true))
    return true;
  Admission admission = admit(server, parser.request());
  route = admission.route;
  if (admission.refusal) {
    respond(std::move(*admission.refusal));
    return false;
  }
  if (parser.stage() != RequestParser::Stage::Body)
    return true;
  phase = Phase::Reading;
  setDeadline(limits().bodyTime);
  if (parser.expectsContinue() && inbox.empty() && out.empty()) {
    out = "HTTP/1.1 100 Continue\r\n\r\n";
    write();
  }
  return true;
}

void ServedConnection::beginAnswer() {
  Request &request = parser.request();
  request.id = requestId(request.header("x-request-id"));
  phase = Phase::Answering;
  // A "100 Continue" may still be on its way.
  out.empty() ? clearDeadline() : setDeadline(limits().writeTime);
  // What is not read to its end leaves the next request's beginning unknown.
  keepsAlive =
      parser.stage() == RequestParser::Stage::Done && parser.keepsAlive();
  isAllFramed = false;
  answerBegan = Clock::now();
  answer = std::make_shared<Answer>(weak_from_this(), limits().unsentBytes);
  framing.emplace(Framing::About{.isHead = request.method == "HEAD",
                                 .isHttp10 = parser.isHttp10(),
                                 .requestId = request.id});
}

void ServedConnection::respond(Reply reply) {
  beginAnswer();
  answer->reply(std::move(reply));
  flush();
  read();
}

void ServedConnection::dispatch() {
  beginAnswer();
  auto given = answer;
  try {
    route->handler(parser.request(), Answer::responder(given));
  } catch (...) {
    // Whatever it was, its message is not for clients.
    given->abandon();
  }
  flush();
  if (hasPeerClosed && answer && !answer->hasEnded())
    abortNow();
}

// Sending.

void ServedConnection::flush() {
  if (phase != Phase::Answering)
    return;
  Answer::Taken taken = answer->take(out.size() - sent);
  if (taken.hasFailed)
    return abortNow(true);
  if (!out.empty() || isAllFramed)
    return;
  bool keeps = keepsAlive && !server.isDraining;
  isAllFramed = taken.hasEnded;
  framing->append(out, std::move(taken), keeps);
  // Once the head is out, the client has been told.
  keepsAlive = keeps;
  if (!out.empty())
    write();
  else if (isAllFramed)
    completeAnswer();
}

void ServedConnection::write() {
  if (phase == Phase::Answering)
    setDeadline(limits().writeTime);
  heldByKernel = unacknowledged();
  socket.async_write_some(
      asio::buffer(out.data() + sent, out.size() - sent),
      [self = shared_from_this()](error_code error, size_t count) {
        self->onWritten(error, count);
      });
}

void ServedConnection::onWritten(error_code error, size_t count) {
  if (phase == Phase::Closed)
    return;
  if (error)
    return abortNow();
  sent += count;
  if (sent < out.size())
    return write();
  sent = 0;
  // Large answers do not stay in memory while a connection idles.
  out.size() > aheadBytes ? std::string().swap(out) : out.clear();
  if (phase != Phase::Answering)
    return;
  clearDeadline();
  isAllFramed ? completeAnswer() : flush();
}

void ServedConnection::completeAnswer() {
  std::exchange(answer, nullptr)->complete();
  report(framing->isComplete());
  bool isAllRead =
      parser.stage() == RequestParser::Stage::Done && inbox.empty();
  if (keepsAlive) {
    parser.reset();
    isJudged = false;
    phase = Phase::Idle;
    setDeadline(limits().idleTime);
    if (server.isDraining && inbox.empty())
      return close();
    advance();
    return read();
  }
  if (isAllRead || hasPeerClosed)
    return close();
  phase = Phase::Lingering;
  inbox.clear();
  error_code ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  setDeadline(lingerTime);
  read();
}

void ServedConnection::report(bool isComplete) {
  if (!server.options.log)
    return;
  server.options.log(
      {.request = parser.request(),
       .status = framing->status(),
       .bytes = framing->bodyBytes(),
       .seconds =
           std::chrono::duration<f64>(Clock::now() - answerBegan).count(),
       .isComplete = isComplete});
}

// Time.

void ServedConnection::setDeadline(Clock::duration after) {
  due = Clock::now() + after;
  // A timer that fires too early sets itself again, which is cheaper than
  // setting it anew for each request.
  if (!isTimerArmed || due < timer.expiry())
    armTimer();
}

void ServedConnection::armTimer() {
  isTimerArmed = true;
  timer.expires_at(due);
  timer.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->phase == Phase::Closed)
      return;
    self->isTimerArmed = false;
    if (self->due <= Clock::now())
      self->onDeadline();
    else if (self->due != Clock::time_point::max())
      self->armTimer();
  });
}

void ServedConnection::onDeadline() {
  clearDeadline();
  switch (phase) {
  case Phase::Reading:
    return respond(
        errorReply(408, "the request took too long to arrive", "timeout"));
  case Phase::Answering:
    // The kernel takes more only when a third of its buffer is free, which a
    // slow client may need minutes for; progress is what the client has taken.
    if (int now = unacknowledged(); now < heldByKernel) {
      heldByKernel = now;
      return setDeadline(limits().writeTime);
    }
    return abortNow(true);
  case Phase::Idle:
  case Phase::Lingering:
  case Phase::Closed:
    return close();
  }
}

/// Bytes that the kernel holds because the client has not taken them yet.
int ServedConnection::unacknowledged() {
  int count = 0;
  return ::ioctl(socket.native_handle(), SIOCOUTQ, &count) == 0 ? count : 0;
}

// The end.

void ServedConnection::drainNow() {
  if (phase == Phase::Idle && inbox.empty())
    close();
}

void ServedConnection::abortNow(bool resets) {
  close(resets);
  if (auto left = std::exchange(answer, nullptr)) {
    left->vanish();
    report(false);
  }
}

/// `resets`: what the client has not taken yet is thrown away.
void ServedConnection::close(bool resets) {
  if (std::exchange(phase, Phase::Closed) == Phase::Closed)
    return;
  error_code ignored;
  if (resets)
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
  timer.cancel();
  watchTimer.cancel();
}

} // namespace

void Connection::open(asio::io_context &loop, int socket,
                      std::shared_ptr<ServerState> server, bool isOverLimit) {
  auto connection = std::make_shared<ServedConnection>(loop, socket, server);
  server->connections.add(connection);
  asio::post(loop, [connection = std::move(connection), isOverLimit] {
    connection->begin(isOverLimit);
  });
}

} // namespace lathe::runtime::http
