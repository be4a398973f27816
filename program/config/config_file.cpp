#include "program/config/config_file.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "core/error.h"
#include "core/formats/file.h"
#include "program/config/deberta.h"
#include "program/config/families.h"

namespace metaprof {
namespace {

using namespace configs;

constexpr uintmax_t kMostBytes = uintmax_t{16} << 20;

struct Family {
  std::string_view model_type;
  Program (*program)(const ConfigModel&);
  bool caches = false;  ///< it can be called with a cache of keys
};
constexpr Family kFamilies[] = {
    {"albert", albert_program},
    {"bart", bart_program},
    {"bert", bert_program},
    {"bloom", bloom_program},
    {"clip", clip_program},
    {"deberta-v2", deberta_v2_program},
    {"deepseek_v2", deepseek_v2_program, true},
    {"deepseek_v3", deepseek_v3_program, true},
    {"dinov2", dinov2_program},
    {"distilbert", distilbert_program},
    {"electra", electra_program},
    {"gemma", gemma_program, true},
    {"gemma2", gemma2_program, true},
    {"gemma3", gemma3_program},
    {"gemma3_text", gemma3_text_program, true},
    {"gpt2", gpt2_program},
    {"gpt_neo", gpt_neo_program},
    {"gpt_neox", gpt_neox_program},
    {"gpt_oss", gpt_oss_program, true},
    {"llama", llama_program, true},
    {"ministral", ministral_program, true},
    {"mistral", mistral_program, true},
    {"mixtral", mixtral_program, true},
    {"olmo2", olmo2_program, true},
    {"opt", opt_program},
    {"phi", phi_program},
    {"phi3", phi3_program, true},
    {"qwen2", qwen2_program, true},
    {"qwen3", qwen3_program, true},
    {"qwen3_moe", qwen3_moe_program, true},
    {"roberta", roberta_program},
    {"siglip", siglip_program},
    {"starcoder2", starcoder2_program, true},
    {"t5", t5_program},
    {"vit", vit_program},
    {"whisper", whisper_program},
    {"xlm-roberta", roberta_program},
};

const Family& family_of(const std::string& model_type, const std::string& where) {
  std::vector<std::string_view> known;
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return family;
    known.push_back(family.model_type);
  }
  fail(
      "{}: model_type '{}' is of no family that is known ({}); export the model with torch.export.save and "
      "give "
      "the .pt2",
      where, model_type, fmt::join(known, ", "));
}

[[noreturn]] void refuse_cache(const Family& asked) {
  std::vector<std::string_view> caching;
  for (const Family& family : kFamilies)
    if (family.caches) caching.push_back(family.model_type);
  fail("--kv-cache: a cache is not built for the family {}; it is for {}", asked.model_type,
       fmt::join(caching, ", "));
}

std::string file_of(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return path;
  const std::string file = (std::filesystem::path(path) / "config.json").string();
  if (!is_there(file)) fail("{}: the folder has no config.json", path);
  return file;
}

// "models/llama/config.json" is llama; "llama.config.json" and "llama.json" are, too.
std::string name_of(const std::string& file) {
  std::filesystem::path path(file);
  std::string name = path.stem().string();
  if (name == "config") name = std::filesystem::absolute(path).parent_path().filename().string();
  if (name.ends_with(".config")) name.resize(name.size() - 7);
  return name;
}

}  // namespace

bool is_config_path(const std::string& path) {
  std::error_code code;
  return path.ends_with(".json") || std::filesystem::is_directory(path, code);
}

ConfigFile::ConfigFile(const std::string& path)
    : file_(file_of(path)), text_(read_file(file_, kMostBytes, "a configuration")), name_(name_of(file_)) {}

ConfigFile::ConfigFile(std::string text, std::string name)
    : file_(name), text_(std::move(text)), name_(std::move(name)) {}

Program ConfigFile::program(const InputSizes& sizes) const {
  const JsonDocument document(text_, file_);
  const Json root = document.root();
  if (!root.is_object()) root.reject("expected an object: the configuration of a model");
  if (!root.find("model_type"))
    fail("{}: model_type is missing, which says what model this is the configuration of", root.where());
  const Family& family = family_of(root.at("model_type").string(), root.where());
  if (sizes.cached && !family.caches) refuse_cache(family);
  Program program = family.program({.config = Config(root), .name = name_, .sizes = sizes});
  program.origin = file_;
  return program;
}

}  // namespace metaprof
