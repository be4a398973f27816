#pragma once
// Python's pickle format, protocols 0 to 5, as far as plain data needs it: dictionaries, lists, tuples, text,
// numbers, booleans, None. A pickle is a program; what would call or import anything is refused, or, where the reader
// asks for it, kept as a description of that call. Nothing is ever called.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace metaprof {

class Pickle;

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  dictionary,
  global,  ///< what would be imported: its text is "module name"
  call,  ///< elements: what would be called, the tuple of its arguments, and the state set afterwards, if any
  persistent  ///< element: the name of what stands outside the pickle
};

/// A value of a pickle, which must outlive it. Errors of the accessors name the file and what is expected.
class PickleValue {
 public:
  PickleKind kind() const;
  bool is_none() const { return kind() == PickleKind::none; }
  int64_t integer() const;        ///< of a boolean, too
  double real() const;            ///< of an integer, too
  std::string_view text() const;  ///< UTF-8, not checked
  /// The same number for the same value of the pickle, however often it is referred to.
  uint32_t identity() const { return node_; }
  /// Of a list, a tuple, a call, or what is persistent.
  size_t size() const;
  PickleValue element(size_t index) const;
  /// Of a dictionary; nothing if there is no such key.
  std::optional<PickleValue> find(std::string_view key) const;
  /// Errors: there is no such key.
  PickleValue at(std::string_view key) const;
  /// Of a dictionary: its entries, in order.
  std::vector<std::pair<PickleValue, PickleValue>> entries() const;
  /// Of a dictionary: the values, in order.
  std::vector<PickleValue> values() const;
  /// Always an Error.
  [[noreturn]] void reject(std::string_view expected) const;

 private:
  friend class Pickle;
  PickleValue(const Pickle& pickle, uint32_t node) : pickle_(&pickle), node_(node) {}

  const Pickle* pickle_;
  uint32_t node_;
};

class Pickle {
 public:
  static constexpr size_t kMostValues = size_t{1} << 25;
  /// `name`: for messages. Errors: it is no pickle, ends too early, has more than `most_values` values or
  /// 1000 open collections, a number of more than 64 bits, or anything but plain data.
  Pickle(std::string bytes, std::string name, size_t most_values = kMostValues);
  /// The same with descriptions of calls among the values.
  static Pickle with_calls(std::string bytes, std::string name);
  Pickle(const Pickle&) = delete;

  PickleValue root() const { return {*this, root_}; }

 private:
  friend class PickleValue;
  friend class PickleMachine;
  using Kind = PickleKind;
  Pickle(std::string bytes, std::string name, size_t most_values, bool calls);
  std::string_view writer() const;  // for messages
  struct Node {
    Kind kind = Kind::none;
    uint32_t length = 0;  // of a text
    int64_t number = 0;   // integer; the bits of a real; where a text begins; index into collections_
  };

  std::string bytes_, name_;
  const bool calls_;
  std::vector<Node> nodes_;
  std::vector<std::vector<uint32_t>> collections_;  // elements; of a dictionary key, value, key, value …
  uint32_t root_ = 0;
};

}  // namespace metaprof
