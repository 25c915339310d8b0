/// \file
/// Writes GGUF files for tests, right ones and wrong ones. It checks nothing.
///
///     GgufWriter writer;
///     writer.u32("llama.block_count", 1)
///         .strings("tokenizer.ggml.tokens", {"a", "b"})
///         .tensor("output.weight", {64, 2}, 0, data);
///     dir.write("model.gguf", writer.bytes());
#ifndef LATHE_TESTS_UNIT_SUPPORT_GGUFWRITER_H
#define LATHE_TESTS_UNIT_SUPPORT_GGUFWRITER_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::tests {

class GgufWriter {
public:
  using Bytes = std::vector<uint8_t>;

  // Written as they are; counts that stay empty are the true ones.
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensorCount;
  std::optional<uint64_t> keyCount;
  /// Used for placing tensors; add the key yourself if it is not 32.
  uint64_t alignment = 32;

  template <typename T> static void put(Bytes &out, T value) {
    const auto *raw = reinterpret_cast<const uint8_t *>(&value);
    out.insert(out.end(), raw, raw + sizeof(T));
  }
  static void putString(Bytes &out, std::string_view text) {
    put<uint64_t>(out, text.size());
    out.insert(out.end(), text.begin(), text.end());
  }

  /// A key with any type number and value bytes.
  GgufWriter &raw(std::string_view key, uint32_t type, const Bytes &value) {
    putString(keys, key);
    put(keys, type);
    keys.insert(keys.end(), value.begin(), value.end());
    ++keysWritten;
    return *this;
  }
  template <typename T>
  GgufWriter &scalar(std::string_view key, uint32_t type, T value) {
    Bytes out;
    put(out, value);
    return raw(key, type, out);
  }
  GgufWriter &u8(std::string_view key, uint8_t v) { return scalar(key, 0, v); }
  GgufWriter &i8(std::string_view key, int8_t v) { return scalar(key, 1, v); }
  GgufWriter &u16(std::string_view key, uint16_t v) {
    return scalar(key, 2, v);
  }
  GgufWriter &i16(std::string_view key, int16_t v) { return scalar(key, 3, v); }
  GgufWriter &u32(std::string_view key, uint32_t v) {
    return scalar(key, 4, v);
  }
  GgufWriter &i32(std::string_view key, int32_t v) { return scalar(key, 5, v); }
  GgufWriter &f32(std::string_view key, float v) { return scalar(key, 6, v); }
  GgufWriter &boolean(std::string_view key, bool v) {
    return scalar(key, 7, static_cast<uint8_t>(v));
  }
  GgufWriter &u64(std::string_view key, uint64_t v) {
    return scalar(key, 10, v);
  }
  GgufWriter &i64(std::string_view key, int64_t v) {
    return scalar(key, 11, v);
  }
  GgufWriter &f64(std::string_view key, double v) { return scalar(key, 12, v); }
  GgufWriter &string(std::string_view key, std::string_view value) {
    Bytes out;
    putString(out, value);
    return raw(key, 8, out);
  }
  /// An array of fixed-size elements of the given type number.
  template <typename T>
  GgufWriter &array(std::string_view key, uint32_t type,
                    const std::vector<T> &values) {
    Bytes out;
    put(out, type);
    put<uint64_t>(out, values.size());
    for (T value : values)
      put(out, value);
    return raw(key, 9, out);
  }
  GgufWriter &strings(std::string_view key,
                      const std::vector<std::string> &values) {
    Bytes out;
    put<uint32_t>(out, 8);
    put<uint64_t>(out, values.size());
    for (const std::string &value : values)
      putString(out, value);
    return raw(key, 9, out);
  }

  /// A tensor of a ggml type number, dims in ggml order. Its data goes behind
  /// the previous tensor's, aligned, unless `offset` is stated, in which case
  /// only the record says so.
  GgufWriter &tensor(std::string_view name, const std::vector<uint64_t> &dims,
                     uint32_t type, const Bytes &bytes,
                     std::optional<uint64_t> offset = std::nullopt,
                     std::optional<uint32_t> rank = std::nullopt) {
    while (data.size() % alignment)
      data.push_back(0);
    putString(records, name);
    put(records, rank.value_or(static_cast<uint32_t>(dims.size())));
    for (uint64_t dim : dims)
      put(records, dim);
    put(records, type);
    put<uint64_t>(records, offset.value_or(data.size()));
    data.insert(data.end(), bytes.begin(), bytes.end());
    ++tensorsWritten;
    return *this;
  }

  /// The whole file. It ends with the last tensor's last byte.
  Bytes bytes() const {
    Bytes out(magic.begin(), magic.end());
    put(out, version);
    put(out, tensorCount.value_or(tensorsWritten));
    put(out, keyCount.value_or(keysWritten));
    out.insert(out.end(), keys.begin(), keys.end());
    out.insert(out.end(), records.begin(), records.end());
    if (!data.empty())
      while (out.size() % alignment)
        out.push_back(0);
    out.insert(out.end(), data.begin(), data.end());
    return out;
  }

private:
  Bytes keys, records, data;
  uint64_t keysWritten = 0, tensorsWritten = 0;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SUPPORT_GGUFWRITER_H
