#include "estimate/results/input_row.h"

#include <fmt/format.h>

#include "core/formats/display.h"

namespace metaprof {

std::string inputs_text(const std::vector<InputRow>& inputs, const std::vector<InputRow>& others,
                        const std::string& varying) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Sizes& sizes = inputs[i].sizes;
    const bool comparable = i < others.size() && others[i].sizes.size() == sizes.size();
    std::string words;
    for (size_t k = 0; k < sizes.size(); ++k)
      words += (k == 0 ? "" : ",") +
               (comparable && others[i].sizes[k] != sizes[k] ? varying : fmt::format("{}", sizes[k]));
    text += fmt::format("{}{} {}[{}]", text.empty() ? "" : ", ", shown(inputs[i].name, kMostCharactersOfName),
                        short_name(inputs[i].dtype), words);
  }
  return text;
}

}  // namespace metaprof
