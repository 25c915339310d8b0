#include "runtime/serve/http/RequestParser.h"
#include "runtime/serve/http/HttpServer.h"
#include "runtime/serve/http/RequestTarget.h"

// Beast asserts that a last chunk arrives in at least five bytes, which a
// client can disprove; the code behind the assertion is right all the same.
#define BOOST_DISABLE_ASSERTS
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <optional>

namespace lathe::runtime::http {

namespace beast = boost::beast;
using beast::error_code;
using Name = beast::http::field;
using Text = beast::string_view;

static std::string_view view(Text text) { return {text.data(), text.size()}; }

/// One request. Beast looks at line, headers and chunks; this class keeps what
/// it finds.
class Message : public beast::http::basic_parser<true> {
public:
  explicit Message(const HttpLimits &limits) {
    header_limit(limits.headerBytes);
    body_limit(limits.bodyBytes);
    eager(false);
  }

  Request request;
  Refusal refusal;
  u64 consumed = 0;
  bool isHttp10 = false;
  bool expectsContinue = false;

  error_code refuse(u32 status, std::string_view message) {
    if (refusal.status == 0)
      refusal = {status, message};
    return make_error_code(beast::http::error::bad_field);
  }

private:
  bool hasTransferEncoding = false;
  u32 hosts = 0, lengths = 0, authorizations = 0;

  void on_request_impl(beast::http::verb, Text method, Text target, int version,
                       error_code &error) override {
    isHttp10 = version < 11;
    request.method = method;
    auto parsed = parseTarget(view(target));
    if (!parsed) {
      error = refuse(400, "the request target is malformed");
      return;
    }
    request.path = std::move(parsed->path);
    request.query = std::move(parsed->query);
  }

  void on_field_impl(Name name, Text text, Text value,
                     error_code &error) override {
    // Trailers come after the request has been judged by its headers.
    if (is_header_done())
      return;
    if (name == Name::host && ++hosts > 1)
      error = refuse(400, "there is more than one Host header");
    else if (name == Name::authorization && ++authorizations > 1)
      error = refuse(400, "there is more than one Authorization header");
    else if (name == Name::content_length)
      error = checkLength(view(value));
    else if (name == Name::transfer_encoding)
      error = checkEncoding(view(value));
    else if (name == Name::expect)
      error = checkExpectation(view(value));
    if (!error)
      request.headers.emplace_back(text, value);
  }

  error_code checkLength(std::string_view value) {
    if (++lengths > 1)
      return refuse(400, "there is more than one Content-Length");
    if (!std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= '0' && c <= '9'; }))
      return refuse(400, "Content-Length is not a number");
    return {};
  }

  error_code checkEncoding(std::string_view value) {
    if (isHttp10 || hasTransferEncoding)
      return refuse(400, "Transfer-Encoding is not allowed here");
    hasTransferEncoding = true;
    if (!equalsNoCase(value, "chunked"))
      return refuse(501, "the only Transfer-Encoding that is known is chunked");
    return {};
  }

  error_code checkExpectation(std::string_view value) {
    if (!equalsNoCase(value, "100-continue"))
      return refuse(417, "the only expectation that is known is 100-continue");
    expectsContinue = !isHttp10;
    return {};
  }

  void on_header_impl(error_code &error) override {
    if (!isHttp10 && hosts == 0)
      error = refuse(400, "the Host header is missing");
    else if (hasTransferEncoding && lengths != 0)
      error = refuse(400, "there are both Content-Length and "
                          "Transfer-Encoding");
  }

  size_t on_body_impl(Text bytes, error_code &) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  size_t on_chunk_body_impl(u64, Text bytes, error_code &) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_body_init_impl(const boost::optional<u64> &, error_code &) override {}
  void on_chunk_header_impl(u64, Text, error_code &) override {}
  void on_finish_impl(error_code &) override {}
  void on_response_impl(int, Text, int, error_code &) override {}
};

static Refusal refusalOf(error_code error) {
  using Error = beast::http::error;
  if (error == Error::body_limit)
    return {413, "the body is larger than this server accepts"};
  if (error == Error::header_limit)
    return {431, "the headers are larger than this server accepts"};
  if (error == Error::bad_version)
    return {400, "this is not HTTP/1.1 or HTTP/1.0"};
  if (error == Error::bad_content_length ||
      error == Error::multiple_content_length ||
      error == Error::bad_transfer_encoding)
    return {400, "Content-Length and Transfer-Encoding contradict each other "
                 "or are malformed"};
  return {400, "the request is not well-formed HTTP"};
}

class RequestParser::Impl {
public:
  explicit Impl(const HttpLimits &limits) : limits(limits) { reset(); }

  void reset() {
    message.emplace(limits);
    stage = Stage::Empty;
  }

  size_t parse(std::string_view bytes);

  const HttpLimits &limits;
  std::optional<Message> message;
  Stage stage = Stage::Empty;

private:
  void fail(Refusal refusal) {
    if (message->refusal.status == 0)
      message->refusal = refusal;
    stage = Stage::Bad;
  }
};

size_t RequestParser::Impl::parse(std::string_view bytes) {
  size_t used = 0;
  // An empty line before a request is to be ignored (RFC 9112, 2.2).
  while (stage == Stage::Empty && used < bytes.size() &&
         (bytes[used] == '\r' || bytes[used] == '\n'))
    ++used;
  while (used < bytes.size() && stage != Stage::Done && stage != Stage::Bad) {
    Stage before = stage;
    if (stage == Stage::Empty)
      stage = Stage::Headers;
    std::string_view rest = bytes.substr(used);
    error_code error;
    size_t taken = message->put({rest.data(), rest.size()}, error);
    used += taken;
    if (stage == Stage::Headers) {
      // Beast counts the first line for itself.
      message->consumed += taken;
      u64 all = message->consumed;
      if (!message->is_header_done())
        all += bytes.size() - used;
      if (all > limits.headerBytes)
        error = beast::http::error::header_limit;
    }
    bool needsMore = error == beast::http::error::need_more;
    if (error && !needsMore) {
      fail(refusalOf(error));
    } else if (message->is_done()) {
      stage = Stage::Done;
    } else if (message->is_header_done()) {
      stage = Stage::Body;
      if (needsMore && bytes.size() - used > limits.headerBytes)
        fail({400, "the header or trailer of a chunk is too long"});
      if (before != Stage::Body)
        break;
    }
    if (needsMore)
      break;
  }
  return used;
}

RequestParser::RequestParser(const HttpLimits &limits)
    : impl(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

void RequestParser::reset() { impl->reset(); }
size_t RequestParser::parse(std::string_view bytes) {
  return impl->parse(bytes);
}
RequestParser::Stage RequestParser::stage() const { return impl->stage; }
const Refusal &RequestParser::refusal() const { return impl->message->refusal; }
Request &RequestParser::request() { return impl->message->request; }
bool RequestParser::keepsAlive() const {
  return impl->stage != Stage::Bad && impl->message->keep_alive();
}
bool RequestParser::isHttp10() const { return impl->message->isHttp10; }
bool RequestParser::expectsContinue() const {
  return impl->message->expectsContinue;
}

} // namespace lathe::runtime::http
