/// \file
/// The values a template computes with: Python's, as far as templates see
/// them. Strings and containers are immutable and shared; what has identity
/// (namespaces, macros, iterators) is an Object owned by the rendering's Heap,
/// so that cycles need no collector and destruction never recurses deeply.
#ifndef LATHE_RUNTIME_TEXT_JINJA_VALUE_H
#define LATHE_RUNTIME_TEXT_JINJA_VALUE_H

#include "runtime/text/jinja/Meter.h"
#include "runtime/text/jinja/Text.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lathe::runtime::jinja {

/// Containers nest at most this deep, so that recursion over them is bounded.
constexpr size_t maxValueDepth = 100;

using Int = __int128;
class Value;
class Object;
class Builder;

/// A string.
struct StringBox : Metered {
  Text text;
};

/// The absence of a value; the message is raised when it is used.
struct UndefinedBox : Metered {
  std::string message;
};

struct SeqBox;
struct DictBox;

/// One template value. Copies share.
class Value {
public:
  Value() = default; ///< None.
  Value(bool b) : storage(b) {}
  Value(int i) : storage(static_cast<Int>(i)) {}
  Value(Int i) : storage(i) {}
  Value(double d) : storage(d) {}
  Value(Object *object) : storage(object) {}
  Value(std::shared_ptr<const UndefinedBox> u) : storage(std::move(u)) {}
  Value(std::shared_ptr<const StringBox> s) : storage(std::move(s)) {}
  Value(std::shared_ptr<const SeqBox> s) : storage(std::move(s)) {}
  Value(std::shared_ptr<const DictBox> d) : storage(std::move(d)) {}
  Value(const char *) = delete;

  bool isNone() const { return is<std::monostate>(); }
  bool isUndefined() const { return is<std::shared_ptr<const UndefinedBox>>(); }
  bool isString() const { return is<std::shared_ptr<const StringBox>>(); }
  bool isSeq() const { return is<std::shared_ptr<const SeqBox>>(); }
  bool isDict() const { return is<std::shared_ptr<const DictBox>>(); }

  const bool *boolean() const { return std::get_if<bool>(&storage); }
  const Int *integer() const { return std::get_if<Int>(&storage); }
  const double *real() const { return std::get_if<double>(&storage); }
  const UndefinedBox *undefined() const {
    return box<std::shared_ptr<const UndefinedBox>>();
  }
  const StringBox *string() const {
    return box<std::shared_ptr<const StringBox>>();
  }
  const SeqBox *seq() const { return box<std::shared_ptr<const SeqBox>>(); }
  const DictBox *dict() const { return box<std::shared_ptr<const DictBox>>(); }
  Object *object() const {
    auto *p = std::get_if<Object *>(&storage);
    return p ? *p : nullptr;
  }

  /// The text of a string; the value must be one.
  const Text &text() const { return string()->text; }

  /// An int or a bool as an int.
  bool asInt(Int &out) const;
  /// Any number as a double.
  bool asReal(double &out) const;
  bool isNumber() const { return boolean() || integer() || real(); }

private:
  template <typename T> bool is() const {
    return std::holds_alternative<T>(storage);
  }
  template <typename P> typename P::element_type *box() const {
    auto *p = std::get_if<P>(&storage);
    return p ? p->get() : nullptr;
  }

  std::variant<std::monostate, bool, Int, double,
               std::shared_ptr<const UndefinedBox>,
               std::shared_ptr<const StringBox>, std::shared_ptr<const SeqBox>,
               std::shared_ptr<const DictBox>, Object *>
      storage;
};

using Values = std::vector<Value>;

/// What a SeqBox is in Python. Group is groupby's named tuple.
enum class SeqKind { List, Tuple, Group, Range, Items, Keys, DictValues };

struct SeqBox : Metered {
  SeqKind kind = SeqKind::List;
  size_t depth = 1;
  Values items;
  /// Of a Range only.
  Int start = 0, stop = 0, step = 1;

  bool isTuple() const {
    return kind == SeqKind::Tuple || kind == SeqKind::Group;
  }
  /// Dict views have no subscript.
  bool isView() const {
    return kind == SeqKind::Items || kind == SeqKind::Keys ||
           kind == SeqKind::DictValues;
  }
};

/// Insertion-ordered; keys are hashable and distinct.
struct DictBox : Metered {
  size_t depth = 1;
  std::vector<std::pair<Value, Value>> entries;

  /// The entry's value or nullptr; spends steps for the search.
  const Value *find(Meter &meter, const Value &key) const;
  const Value *find(Meter &meter, std::string_view key) const;
};

/// Something with identity. `kind` selects the derived struct.
class Object : public Metered {
public:
  enum class Kind {
    Namespace,
    Macro,
    Method,
    Function,
    Iterator,
    Loop,
    Joiner,
    Cycler
  };
  const Kind kind;
  virtual ~Object() = default;

protected:
  explicit Object(Kind kind) : kind(kind) {}
};

/// Mutable attributes, set by `{% set ns.x = … %}`.
struct Namespace : Object {
  Namespace() : Object(Kind::Namespace) {}
  std::vector<std::pair<std::string, Value>> fields;
  const Value *find(std::string_view name) const;
};

/// A one-shot sequence, what Python calls a generator.
struct Iterator : Object {
  Iterator() : Object(Kind::Iterator) {}
  Values items;
  size_t next = 0;
};

/// Owns the objects of one rendering.
class Heap {
public:
  explicit Heap(Meter &meter) : meter(meter) {}

  template <typename T, typename... Args> T *make(Args &&...args) {
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    object->charge(&meter, sizeof(T) + sizeof(object));
    T *raw = object.get();
    objects.push_back(std::move(object));
    return raw;
  }

private:
  Meter &meter;
  std::vector<std::unique_ptr<Object>> objects;
};

/// A text under construction; what it holds counts as value memory.
class Builder {
public:
  explicit Builder(Meter &meter) : meter(meter) {}
  Builder(const Builder &) = delete;
  Builder &operator=(const Builder &) = delete;
  ~Builder() { meter.release(charged); }

  /// Structure and constants: trusted.
  void add(std::string_view bytes) { add(bytes, true); }
  void add(std::string_view bytes, bool trusted) {
    grow(bytes.size());
    text.append(bytes, trusted);
  }
  void add(const Text &other) { add(other, 0, other.size()); }
  void add(const Text &other, size_t begin, size_t end) {
    if (begin >= end)
      return;
    grow(end - begin);
    text.append(other, begin, end);
  }
  size_t size() const { return text.size(); }
  const Text &peek() const { return text; }
  Meter &budget() const { return meter; }

  /// The finished string.
  Value take();
  Text takeText() { return std::move(text); }

private:
  void grow(size_t bytes) {
    // One run per append at most, so this bounds the footprint.
    size_t more = bytes + sizeof(Text::Run);
    meter.touch(bytes);
    meter.reserve(more);
    charged += more;
  }

  Meter &meter;
  Text text;
  size_t charged = 0;
};

// Making values. A null meter makes an uncounted constant.
Value makeString(Meter *meter, Text text);
inline Value makeString(Meter *meter, std::string bytes, bool trusted = true) {
  return makeString(meter, Text(std::move(bytes), trusted));
}
Value makeUndefined(Meter *meter, std::string message);
/// Checks the depth of the items.
Value makeSeq(Meter &meter, SeqKind kind, Values items);
Value makeRange(Meter &meter, Int start, Int stop, Int step);
/// Entries must have distinct hashable keys.
Value makeDict(Meter &meter, std::vector<std::pair<Value, Value>> entries);
/// Puts (key, value) into `entries` as Python's dict does; raises on a key
/// that cannot be hashed.
void insertEntry(Meter &meter, std::vector<std::pair<Value, Value>> &entries,
                 Value key, Value value);

// Python's view of values.
/// "str", "int", "NoneType", …
std::string_view typeName(const Value &value);
bool truthy(const Value &value);
bool isHashable(const Value &value);
/// `a == b`.
bool equals(Meter &meter, const Value &a, const Value &b);
/// `a < b`; raises where Python does.
bool lessThan(Meter &meter, const Value &a, const Value &b);
/// str(value).
void appendStr(Builder &out, const Value &value);
/// repr(value).
void appendRepr(Builder &out, const Value &value);
/// str(value) as a value; strings pass through.
Value toStr(Meter &meter, const Value &value);
/// repr of a float: shortest digits that read back equal.
std::string reprReal(double value);
/// Raises "'x' is undefined" if it is.
void requireDefined(const Value &value);

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_VALUE_H
