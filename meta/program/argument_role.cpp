#include "meta/program/argument_role.h"

#include <algorithm>
#include <iterator>

namespace metaprof {
namespace {

constexpr struct {
  std::string_view name;
  ArgumentRole role;
} kRoles[] = {
    {"train", ArgumentRole::training_flag},
    {"training", ArgumentRole::training_flag},
    {"dropout_p", ArgumentRole::dropout_probability},
    {"cudnn_enabled", ArgumentRole::cudnn_flag},
    {"cudnn_enable", ArgumentRole::cudnn_flag},
    {"end", ArgumentRole::length},
    {"n", ArgumentRole::length},
    {"m", ArgumentRole::length},
    {"size", ArgumentRole::sizes},
    {"shape", ArgumentRole::sizes},
    {"repeats", ArgumentRole::repeats},
};

}  // namespace

ArgumentRole argument_role(std::string_view name) {
  const auto found = std::ranges::find(kRoles, name, [](const auto& row) { return row.name; });
  return found == std::end(kRoles) ? ArgumentRole::none : found->role;
}

}  // namespace metaprof
