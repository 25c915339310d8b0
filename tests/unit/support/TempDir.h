/// \file
/// A scratch directory for one test.
#ifndef LATHE_TESTS_UNIT_SUPPORT_TEMPDIR_H
#define LATHE_TESTS_UNIT_SUPPORT_TEMPDIR_H

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::tests {

/// An empty directory under the system's temporary one, removed with all it
/// holds when destroyed.
class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "lathe-test.XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      std::abort();
    directory = pattern;
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }

  /// The path of the directory itself.
  std::string path() const { return directory; }
  /// The path of an entry in it.
  std::string path(std::string_view name) const {
    return directory + "/" + std::string(name);
  }
  /// Writes a file into it and returns its path.
  std::string write(std::string_view name,
                    std::span<const uint8_t> bytes) const {
    std::string file = path(name);
    // Truncating an old file makes ext4 flush the new one when it is closed.
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return file;
  }
  std::string write(std::string_view name, std::string_view text) const {
    return write(name,
                 {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  }
  /// Names of the entries, hidden ones too, in no order.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
      names.push_back(entry.path().filename().string());
    return names;
  }

private:
  std::string directory;
};

/// All of a file, as text.
inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SUPPORT_TEMPDIR_H
