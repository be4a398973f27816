#pragma once
// The files of configs/ as text within the program.

#include <string_view>
#include <vector>

namespace metaprof {

struct ConfigText {
  std::string_view name, text;
};
const std::vector<ConfigText>& config_texts();  // written by CMakeLists.txt

}  // namespace metaprof
