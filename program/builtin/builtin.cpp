#include "program/builtin/builtin.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>

#include "program/builtin/config_texts.h"
#include "program/builtin/hub_names.h"
#include "program/builtin/torchvision.h"
#include "program/config/config_file.h"

namespace metaprof {

const std::vector<BuiltinName>& builtin_models() {
  static const std::vector<BuiltinName> models = [] {
    std::vector<BuiltinName> all;
    for (const ConfigText& config : config_texts()) all.push_back({config.name, "transformers"});
    for (const auto* family : {&vision::resnets(), &vision::plain_networks()})
      for (const vision::VisionModel& model : *family) all.push_back({model.name, "torchvision"});
    std::ranges::sort(all, {}, &BuiltinName::name);
    return all;
  }();
  return models;
}

std::string builtin_named(std::string_view hub) {
  std::string name(hub.substr(hub.rfind('/') + 1));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto other = std::ranges::find(kHubNames, name, &HubName::hub);
  if (other != std::end(kHubNames)) name = other->name;
  return std::ranges::count(builtin_models(), name, &BuiltinName::name) > 0 ? name : "";
}

std::string_view builtin_config(std::string_view name) {
  for (const ConfigText& config : config_texts())
    if (config.name == name) return config.text;
  return {};
}

BuiltinModel builtin_model(std::string_view name) {
  for (const ConfigText& config : config_texts())
    if (config.name == name)
      return [file = std::make_shared<const ConfigFile>(std::string(config.text), std::string(name))](
                 const InputSizes& sizes) { return file->program(sizes); };
  for (const auto* family : {&vision::resnets(), &vision::plain_networks()})
    for (const vision::VisionModel& model : *family)
      if (model.name == name)
        return [model](const InputSizes& sizes) { return model.program(std::string(model.name), sizes); };
  return {};
}

}  // namespace metaprof
