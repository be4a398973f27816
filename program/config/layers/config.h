#pragma once
// The values of a Hugging Face `config.json`. A key that is missing has the default of the configuration's
// class in transformers 5.17; a value that no model can have is an Error with the file, the key and what is
// expected.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json.h"
#include "core/shape.h"

namespace metaprof {

/// Sizes of the inputs that a model is built for.
struct InputSizes {
  std::optional<int64_t> batch, sequence;    ///< nothing: 1, and the usual length of the family
  std::optional<int64_t> cached = {};        ///< tokens that a decoder has cached; nothing: it keeps no cache
  std::map<std::string, Sizes> inputs = {};  ///< of single inputs, by name
  bool own_loss =
      false;  ///< the loss is what the model's class computes of labels, not a cross-entropy of its logits
};

class Config {
 public:
  /// Names of one value, of which a file has one: {"n_embd", "hidden_size"}.
  using Keys = std::initializer_list<std::string_view>;

  explicit Config(Json object) : object_(object) {}

  /// A number of at least 1 that some size can have.
  int64_t size(Keys keys, int64_t otherwise) const;
  /// The same; nothing if it is missing or null.
  std::optional<int64_t> given_size(Keys keys) const;
  /// A number of at least 0.
  int64_t count(Keys keys, int64_t otherwise) const;
  /// A number of layers: at least 1, and no more than a program may have.
  int64_t layers(Keys keys, int64_t otherwise) const;
  double real(Keys keys, double otherwise) const;
  std::optional<double> given_real(Keys keys) const;
  bool flag(Keys keys, bool otherwise) const;
  std::string text(Keys keys, std::string_view otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;  ///< empty if it is missing or null
  std::vector<int64_t> integers(std::string_view key) const;   ///< the same
  /// The key is there, and its value is null.
  bool is_null(std::string_view key) const;
  /// The member's own members; an empty object if it is missing or null.
  Config nested(std::string_view key) const;
  /// How many members an object has; 0 if it is missing or null.
  int64_t members(std::string_view key) const;

  /// `whole` is `parts` times a number. Error: it is not; `key` names the whole.
  int64_t divided(std::string_view key, int64_t whole, std::string_view by, int64_t parts) const;
  [[noreturn]] void reject(std::string_view key, std::string_view message) const;
  /// "config.json" or "config.json: text_config"
  std::string where() const { return object_.where(); }

 private:
  Json find(Keys keys) const;
  int64_t number(Json value, int64_t least, int64_t most) const;

  Json object_;
};

}  // namespace metaprof
