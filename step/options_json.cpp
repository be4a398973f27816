#include "step/options_json.h"

#include <algorithm>

namespace metaprof {
namespace {

OptionValue option_value(const Member& member, const OptionRule& rule) {
  OptionValue value;
  switch (rule.kind) {
    case OptionRule::Kind::flag: return member.boolean();
    case OptionRule::Kind::real: return member.real();
    case OptionRule::Kind::text: return member.text();
    case OptionRule::Kind::whole: value = member.count(); break;
    case OptionRule::Kind::word: value = member.text(); break;
  }
  if (!rule.allows(value)) member.reject(rule.expected());
  return value;
}

}  // namespace

void read_options(const Member& json, RunOptions& options, std::initializer_list<std::string_view> except) {
  for (const RunOption& option : run_options()) {
    if (std::find(except.begin(), except.end(), option.name) != except.end()) continue;
    if (const auto member = json.find(std::string(option.name)))
      option.set(options, option_value(*member, option.rule));
  }
}

}  // namespace metaprof
