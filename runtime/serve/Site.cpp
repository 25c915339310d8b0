#include "runtime/serve/Site.h"

#include "runtime/serve/PageText.h"
#include "runtime/support/Sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <string>
#include <string_view>

namespace lathe::runtime::serve {

/// The source expression that allows the content of the page's one element of a
/// name: 'sha256-BASE64' (Content Security Policy Level 3, section 2.3.1).
static std::string sourceOf(std::string_view element) {
  std::string_view page = pageText();
  std::string opening = fmt::format("<{}>", element);
  size_t begin = page.find(opening) + opening.size();
  size_t end = page.find(fmt::format("</{}>", element), begin);
  std::string_view content = page.substr(begin, end - begin);
  Sha256::Digest digest = Sha256::digest(
      {reinterpret_cast<const u8 *>(content.data()), content.size()});
  unsigned char base64[(sizeof(digest) + 2) / 3 * 4 + 1];
  EVP_EncodeBlock(base64, digest.data(), int(digest.size()));
  return fmt::format("'sha256-{}'", reinterpret_cast<const char *>(base64));
}

void addPageRoute(http::Routes &routes) {
  http::Reply page{
      .body = std::string(pageText()),
      .contentType = "text/html; charset=utf-8",
      .headers = {
          {"Content-Security-Policy",
           fmt::format("default-src 'none'; script-src {}; style-src {}; "
                       "connect-src 'self'; img-src data:; base-uri 'none'; "
                       "form-action 'none'; frame-ancestors 'none'",
                       sourceOf("script"), sourceOf("style"))},
          {"Referrer-Policy", "same-origin"},
          {"X-Content-Type-Options", "nosniff"},
          {"Cache-Control", "no-cache"},
      }};
  routes.add(
      {.method = "GET",
       .path = "/",
       .handler =
           [page = std::move(page)](
               const http::Request &,
               const std::shared_ptr<http::Responder> &to) { to->reply(page); },
       .access = http::Access::PromptedKey});
}

void addMetricsRoute(http::Routes &routes,
                     std::shared_ptr<const Metrics> metrics) {
  routes.add(
      {.method = "GET",
       .path = "/metrics",
       .handler = [metrics = std::move(metrics)](
                      const http::Request &,
                      const std::shared_ptr<http::Responder> &to) {
         to->reply({.body = metrics->text(),
                    .contentType = "text/plain; version=0.0.4; charset=utf-8"});
       }});
}

} // namespace lathe::runtime::serve
