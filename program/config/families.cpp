#include "program/config/families.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "program/handed_positions.h"

namespace metaprof::configs {
namespace {

constexpr int64_t kUsualSequence = 1024;

}  // namespace

int64_t ConfigModel::sequence(int64_t most_positions) const {
  return sizes.sequence.value_or(std::min(most_positions, kUsualSequence));
}

std::string ConfigModel::architecture(std::string_view usual) const {
  const std::vector<std::string> classes = config.texts("architectures");
  return classes.empty() ? std::string(usual) : classes.front();
}

void ConfigModel::reject_architecture(std::string_view built) const {
  config.reject("architectures", fmt::format("the class {} is not built; those of this family are {}",
                                             architecture("?"), built));
}

int64_t ConfigModel::labels() const {
  if (const int64_t named = config.members("id2label")) return named;
  return config.size({"num_labels"}, 2);
}

Tensor ModelRecorder::input(const std::string& name, DType dtype, const Sizes& usual) {
  names_.push_back(name);
  const auto given = sizes_.inputs.find(name);
  if (given == sizes_.inputs.end()) return recorder_.input(name, dtype, usual);
  if (given->second.size() != usual.size())
    fail("input {} has {} dimensions, as {}; got {}", name, usual.size(), to_string(SizesView(usual)),
         to_string(SizesView(given->second)));
  return recorder_.input(name, dtype, given->second);
}

void ModelRecorder::check_names() const {
  for (const auto& [name, sizes] : sizes_.inputs)
    if (std::ranges::find(names_, name) == names_.end())
      fail("the model has no input '{}'; it has {}{}", name, fmt::join(names_, ", "),
           name == "batch" || name == "sequence" ? fmt::format("; --{} sets the size of all", name) : "");
}

Program ModelRecorder::finish(Tensor loss) const {
  if (sizes_.own_loss)
    fail("--loss transformers: is built for causal language models, and this model is none; leave it out");
  return finished(std::move(loss));
}

Program ModelRecorder::finish_language_model(const Tensor& logits, const Tensor& labels) const {
  return finished(sizes_.own_loss ? next_token_loss(logits, labels) : token_loss(logits, labels));
}

Program ModelRecorder::finished(Tensor loss) const {
  check_names();
  Program program = recorder_.finish(std::move(loss));
  hand_positions(program);
  return program;
}

Program ModelRecorder::finish_cached(const Tensor& logits, const std::vector<Tensor>& kept) const {
  check_names();
  std::vector<Tensor> outputs{logits};
  outputs.insert(outputs.end(), kept.begin(), kept.end());
  Program program = recorder_.finish_outputs(outputs);
  for (size_t i = 1; i < outputs.size(); ++i)
    program.outputs[i].name =
        fmt::format("past_key_values.{}.{}", (i - 1) / 2, i % 2 == 1 ? "keys" : "values");
  return program;
}

}  // namespace metaprof::configs
