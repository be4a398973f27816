#pragma once
// An option's value in JSON. Included only where JSON is written.

#include <nlohmann/json.hpp>

#include "core/option_value.h"

namespace metaprof {

/// null: not given.
inline nlohmann::ordered_json option_json(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

}  // namespace metaprof
