#include "runtime/engine/TrustStore.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lathe::runtime {

namespace {

/// The key file: this word, the seed as 64 hexadecimal digits, a line end.
constexpr std::string_view keyFilePrefix = "lathe-ed25519-seed:";
/// Larger files are neither of the two that belong here.
constexpr off_t maxFileBytes = 1 << 20;

/// A text file of the store, or nothing if it does not exist. `forbidden` are
/// permission bits that it must not have.
Result<std::optional<std::string>> readPrivate(const std::string &path,
                                               mode_t forbidden) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    if (errno == ENOENT)
      return std::nullopt;
    return fail(ErrorKind::Environment, "cannot read {}: {}", displayPath(path),
                std::strerror(errno));
  }
  struct stat status;
  std::string text;
  Result<std::optional<std::string>> result;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > maxFileBytes) {
    result = fail(ErrorKind::InvalidInput, "{} is not a file of lathe's keys",
                  displayPath(path));
  } else if (status.st_mode & forbidden) {
    result = fail(ErrorKind::Environment,
                  "{} may be {} by other users (mode {:o}); run: chmod 600 {}",
                  displayPath(path), forbidden & 044 ? "read" : "changed",
                  status.st_mode & 0777, displayPath(path));
  } else {
    text.resize(static_cast<size_t>(status.st_size));
    ssize_t got = ::pread(fd, text.data(), text.size(), 0);
    if (got < 0)
      result = fail(ErrorKind::Environment, "cannot read {}: {}",
                    displayPath(path), std::strerror(errno));
    else
      result = text.substr(0, static_cast<size_t>(got));
    OPENSSL_cleanse(text.data(), text.size());
  }
  ::close(fd);
  return result;
}

/// Makes a directory and its parents, as the XDG base directory specification
/// asks: mode 0700.
Result<void> makeDirectory(const std::string &path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return fail(ErrorKind::Environment, "cannot make the directory {}: {}",
                  displayPath(part), std::strerror(errno));
    if (end == std::string::npos)
      return {};
  }
}

/// Writes a new file with mode 0600 that appears whole or not at all. False if
/// another process was first.
Result<bool> writeOnce(const std::string &path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  int fd = ::mkostemp(temporary.data(), O_CLOEXEC); // mode 0600
  if (fd < 0)
    return fail(ErrorKind::Environment, "cannot write {}: {}",
                displayPath(path), std::strerror(errno));
  bool written =
      ::write(fd, text.data(), text.size()) == ssize_t(text.size()) &&
      ::fsync(fd) == 0;
  int error = errno;
  ::close(fd);
  // link() fails if the name exists, where rename() would replace another
  // process's key with which it may have signed already.
  bool linked = written && ::link(temporary.c_str(), path.c_str()) == 0;
  if (written && !linked)
    error = errno;
  ::unlink(temporary.c_str());
  if (linked)
    return true;
  if (written && error == EEXIST)
    return false;
  return fail(ErrorKind::Environment, "cannot write {}: {}", displayPath(path),
              std::strerror(error));
}

/// Keeps other processes out of a directory's files while it lives.
class DirectoryLock {
public:
  explicit DirectoryLock(const std::string &path)
      : fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // Where a file system has no locks, two additions at the same moment may
    // lose one; nothing worse.
    if (fd >= 0)
      ::flock(fd, LOCK_EX);
  }
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;
  ~DirectoryLock() {
    if (fd >= 0)
      ::close(fd);
  }

private:
  int fd;
};

/// The seed in a key file; nothing if it is not one.
std::optional<SigningKey::Seed> parseSeed(std::string_view text) {
  if (text.substr(0, keyFilePrefix.size()) != keyFilePrefix)
    return std::nullopt;
  text.remove_prefix(keyFilePrefix.size());
  if (!text.empty() && text.back() == '\n')
    text.remove_suffix(1);
  // Seeds and public keys are 32 bytes in the same digits.
  auto parsed = PublicKey::parse("ed25519:" + std::string(text));
  if (!parsed)
    return std::nullopt;
  return parsed->bytes;
}

std::string seedText(const SigningKey &key) {
  return std::string(keyFilePrefix) +
         PublicKey{key.seed()}.text().substr(std::strlen("ed25519:")) + "\n";
}

} // namespace

Result<TrustStore> TrustStore::ofUser() {
  // The XDG specification: a relative path is to be ignored.
  const char *config = std::getenv("XDG_CONFIG_HOME");
  if (config && config[0] == '/')
    return TrustStore(std::string(config) + "/lathe");
  const char *home = std::getenv("HOME");
  if (home && home[0] == '/')
    return TrustStore(std::string(home) + "/.config/lathe");
  return fail(ErrorKind::Environment,
              "no place for keys: expected HOME or XDG_CONFIG_HOME to be an "
              "absolute path; set one of them");
}

Result<std::optional<SigningKey>> TrustStore::readOwnKey() const {
  auto read = readPrivate(keyPath(), 077);
  if (!read)
    return failFrom(read);
  std::optional<std::string> text = std::move(*read);
  if (!text)
    return std::nullopt;
  auto seed = parseSeed(*text);
  OPENSSL_cleanse(text->data(), text->size());
  if (!seed)
    return fail(ErrorKind::InvalidInput,
                "{} is not a signing key of lathe; move it away to get a new "
                "one",
                displayPath(keyPath()));
  auto key = SigningKey::fromSeed(*seed);
  OPENSSL_cleanse(seed->data(), seed->size());
  if (!key)
    return failFrom(key);
  return std::move(*key);
}

Result<SigningKey> TrustStore::ownKey() const {
  auto read = readOwnKey();
  if (!read)
    return failFrom(read);
  if (std::optional<SigningKey> existing = std::move(*read))
    return std::move(*existing);

  if (auto made = makeDirectory(root); !made)
    return failFrom(made);
  auto created = SigningKey::generate();
  if (!created)
    return created;
  auto written = writeOnce(keyPath(), seedText(*created));
  if (!written)
    return failFrom(written);
  if (*written)
    return created;
  read = readOwnKey();
  if (!read)
    return failFrom(read);
  if (std::optional<SigningKey> others = std::move(*read))
    return std::move(*others);
  return fail(ErrorKind::Environment, "{} vanished while it was read",
              displayPath(keyPath()));
}

Result<std::optional<PublicKey>> TrustStore::ownPublicKey() const {
  auto read = readOwnKey();
  if (!read)
    return failFrom(read);
  std::optional<SigningKey> key = std::move(*read);
  if (!key)
    return std::nullopt;
  return key->publicKey();
}

Result<std::vector<AcceptedKey>> TrustStore::accepted() const {
  auto read = readPrivate(acceptedPath(), 022);
  if (!read)
    return failFrom(read);
  std::vector<AcceptedKey> keys;
  std::optional<std::string> text = std::move(*read);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  for (unsigned line = 1; !rest.empty(); ++line) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view content = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (content.empty() || content.front() == '#')
      continue;
    size_t space = std::min(content.find(' '), content.size());
    auto key = PublicKey::parse(content.substr(0, space));
    if (!key)
      return failFrom(key,
                      fmt::format("{}:{}", displayPath(acceptedPath()), line));
    std::string_view note = content.substr(std::min(space + 1, content.size()));
    keys.push_back({*key, std::string(note)});
  }
  return keys;
}

Result<void> TrustStore::accept(const PublicKey &key,
                                std::string_view note) const {
  for (char c : note)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return fail(ErrorKind::InvalidInput,
                  "the note {} has a control character; use one line of text",
                  quoted(note));
  if (auto made = makeDirectory(root); !made)
    return made;
  DirectoryLock lock(root);
  auto keys = accepted();
  if (!keys)
    return failFrom(keys);
  if (std::any_of(keys->begin(), keys->end(),
                  [&](const AcceptedKey &known) { return known.key == key; }))
    return {};
  auto text = readPrivate(acceptedPath(), 022);
  if (!text)
    return failFrom(text);
  std::string content = text->value_or(
      "# Keys whose engines may run here; one a line, then a note.\n");
  if (!content.empty() && content.back() != '\n')
    content += '\n';
  content += key.text();
  if (!note.empty())
    content.append(" ").append(note);
  content += '\n';

  auto file = AtomicFile::create(acceptedPath(), 0600);
  if (!file)
    return failFrom(file);
  if (auto appended = file->append(
          {reinterpret_cast<const uint8_t *>(content.data()), content.size()});
      !appended)
    return appended;
  return file->commit();
}

} // namespace lathe::runtime
