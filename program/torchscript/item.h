#pragma once
// A value of a TorchScript program while its forward is followed. Numbers, text and lists are what they are; a tensor
// is a handle of the program that is being written down.

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/device.h"
#include "program/nn/tensor.h"
#include "program/torchscript/code.h"

namespace metaprof::script {

class Item;

// Collections may stand in each other as deep as a loop makes them: their
// destructors move out what is inside and free it one by one, without recursion.

/// A list, which is shared by whoever holds it, or a tuple.
struct Sequence {
  ~Sequence();
  void release(std::vector<Item>& into);
  std::vector<Item> elements;
  bool is_tuple = false;
  const Class* type = nullptr;  ///< of a NamedTuple
};

struct Dictionary {
  ~Dictionary();
  void release(std::vector<Item>& into);
  std::vector<std::pair<Item, Item>> entries;  ///< in the order of insertion
};

/// A module, or an object of another class.
struct Object {
  ~Object();
  void release(std::vector<Item>& into);
  const Class* type = nullptr;
  std::map<std::string, Item> attributes;
  int32_t module = -1;  ///< its number in the program; -1: it is no module
};

/// A function of the archive by its qualified name, or an operator.
struct Callable {
  std::string name;
};

class Item {
 public:
  using List = std::shared_ptr<Sequence>;
  using Variant = std::variant<std::monostate, bool, int64_t, double, std::string, nn::Tensor, nn::DTypeOf,
                               Device, List, std::shared_ptr<Dictionary>, std::shared_ptr<Object>, Callable>;

  Item() = default;  ///< None
  template <class T>
  requires std::constructible_from<Variant, T> Item(T value) : value_(std::move(value)) {}
  static Item list(std::vector<Item> elements);
  static Item tuple(std::vector<Item> elements, const Class* type = nullptr);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(value_);
  }
  bool is_none() const { return is<std::monostate>(); }
  bool is_tensor() const { return is<nn::Tensor>(); }
  bool is_sequence() const { return is<List>(); }
  bool is_integer() const { return is<int64_t>() || is<nn::DTypeOf>(); }
  /// A boolean, an integer, or a real number.
  bool is_number() const { return is_integer() || is<bool>() || is<double>(); }

  int64_t integer() const;  ///< of an integer or a boolean
  double real() const;      ///< of any number
  const std::vector<Item>& elements() const { return as<List>()->elements; }

  /// It follows from constants of the code alone: torch.jit computes it before anything runs.
  bool is_constant() const { return is_constant_; }
  void set_constant(bool constant) { is_constant_ = constant; }

  /// "an integer", "a tensor", "a module" …: for messages.
  std::string kind() const;
  /// As Python's str(). Errors: more than a million characters, or lists more than 200 deep.
  std::string text() const;
  /// If this is the last reference to a collection, moves out what is inside.
  void release(std::vector<Item>& into);

 private:
  void write_text(std::string& into, int depth) const;
  std::string text_of_single() const;

  Variant value_;
  bool is_constant_ = false;
};

/// Equal numbers, texts, devices, lists; the same object. Errors: lists of more than 20,000 elements, or more than 200 deep.
bool same(const Item& a, const Item& b);

}  // namespace metaprof::script
