#include "tools/lathe/Terminal.h"

#include "runtime/serve/UtcTime.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace lathe;
using namespace lathe::tools;

namespace {

int firstError = 0;

/// Columns of the terminal on standard error.
size_t columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
    return size.ws_col;
  return 80;
}

class JsonFormatter : public spdlog::formatter {
public:
  void format(const spdlog::details::log_msg &message,
              spdlog::memory_buf_t &into) override {
    auto text = [](spdlog::string_view_t view) {
      return std::string(view.data(), view.size());
    };
    nlohmann::ordered_json line = {
        {"time", runtime::serve::utcTime(message.time)},
        {"level", text(spdlog::level::to_string_view(message.level))},
        {"message", text(message.payload)}};
    std::string dumped = line.dump(
        -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    into.append(dumped.data(), dumped.data() + dumped.size());
    into.push_back('\n');
  }
  std::unique_ptr<formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

} // namespace

void tools::setUpMessages() {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      mayColour(STDERR_FILENO) ? spdlog::color_mode::always
                               : spdlog::color_mode::never);
  auto logger = std::make_shared<spdlog::logger>("lathe", sink);
  logger->set_pattern("lathe: %^%l:%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

void tools::setUpJsonMessages() {
  spdlog::set_formatter(std::make_unique<JsonFormatter>());
}

void tools::write(std::string_view text) {
  if (firstError == 0 &&
      std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    firstError = errno ? errno : EIO;
}

void tools::printJson(const nlohmann::ordered_json &document) {
  write(document.dump(2, ' ', false,
                      nlohmann::ordered_json::error_handler_t::replace));
  write("\n");
}

bool tools::flushOutput() {
  if (firstError == 0 && std::fflush(stdout) != 0)
    firstError = errno ? errno : EIO;
  return firstError == 0;
}

int tools::outputError() { return firstError; }

bool tools::isTerminal(int descriptor) { return isatty(descriptor) == 1; }

bool tools::mayColour(int descriptor) {
  const char *noColour = std::getenv("NO_COLOR");
  const char *term = std::getenv("TERM");
  return isTerminal(descriptor) && !(noColour && *noColour) && term &&
         std::string_view(term) != "dumb";
}

std::string tools::printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F)
      clean += fmt::format("\\x{:02X}", byte);
    else
      clean += c;
  }
  return clean;
}

std::string tools::counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Progress::Progress(bool enabled)
    : enabled(enabled && isTerminal(STDERR_FILENO)) {}

void Progress::update(std::string_view what, uint64_t done, uint64_t total) {
  if (!enabled)
    return;
  auto now = Clock::now();
  if (now - start < std::chrono::seconds(1) ||
      (shown && what == lastWhat &&
       now - last < std::chrono::milliseconds(100)))
    return;
  last = now;
  lastWhat = what;
  std::string line(what);
  if (total != 0) {
    constexpr size_t width = 24;
    double share = std::min(1.0, double(done) / double(total));
    auto full = size_t(share * width);
    line = fmt::format("[{}{}] {:3.0f} % {}", std::string(full, '='),
                       std::string(width - full, ' '), share * 100, what);
  }
  line.resize(std::min(line.size(), columns() - 1));
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
  shown = true;
}

void Progress::clear() {
  if (!shown)
    return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown = false;
}
