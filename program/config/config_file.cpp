#include "program/config/config_file.h"

#include <fmt/ranges.h>

#include <array>
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
  /// peft 0.21, utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.
  std::array<std::string_view, 4> lora_targets = {};
};

constexpr Family kFamilies[] = {
    {"albert", albert_program},
    {"bart", bart_program, false, {"q_proj", "v_proj"}},
    {"bert", bert_program, false, {"query", "value"}},
    {"bloom", bloom_program, false, {"query_key_value"}},
    {"clip", clip_program},
    {"deberta-v2", deberta_v2_program, false, {"query_proj", "value_proj"}},
    {"deepseek_v2", deepseek_v2_program, true},
    {"deepseek_v3", deepseek_v3_program, true},
    {"dinov2", dinov2_program},
    {"distilbert", distilbert_program},
    {"electra", electra_program, false, {"query", "value"}},
    {"gemma", gemma_program, true, {"q_proj", "v_proj"}},
    {"gemma2", gemma2_program, true, {"q_proj", "v_proj"}},
    {"gemma3", gemma3_program},
    {"gemma3_text", gemma3_text_program, true, {"q_proj", "v_proj"}},
    {"gpt2", gpt2_program, false, {"c_attn"}},
    {"gpt_neo", gpt_neo_program, false, {"q_proj", "v_proj"}},
    {"gpt_neox", gpt_neox_program, false, {"query_key_value"}},
    {"gpt_oss", gpt_oss_program, true},
    {"llama", llama_program, true, {"q_proj", "v_proj"}},
    {"ministral", ministral_program, true},
    {"mistral", mistral_program, true, {"q_proj", "v_proj"}},
    {"mixtral", mixtral_program, true, {"q_proj", "v_proj"}},
    {"olmo2", olmo2_program, true},
    {"opt", opt_program, false, {"q_proj", "v_proj"}},
    {"phi", phi_program, false, {"q_proj", "v_proj", "fc1", "fc2"}},
    {"phi3", phi3_program, true},
    {"qwen2", qwen2_program, true, {"q_proj", "v_proj"}},
    {"qwen3", qwen3_program, true, {"q_proj", "v_proj"}},
    {"qwen3_moe", qwen3_moe_program, true},
    {"roberta", roberta_program, false, {"query", "value"}},
    {"siglip", siglip_program},
    {"starcoder2", starcoder2_program, true},
    {"t5", t5_program, false, {"q", "v"}},
    {"vit", vit_program},
    {"whisper", whisper_program},
    {"xlm-roberta", roberta_program, false, {"query", "value"}},
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
  std::string file = (std::filesystem::path(path) / "config.json").string();
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
  if (root.find("schema"))
    fail("{}: is a report ({}); give the model that it is of", root.where(), root.at("schema").string());
  if (!root.find("model_type"))
    fail("{}: model_type is missing, which says what model this is the configuration of", root.where());
  const Family& family = family_of(root.at("model_type").string(), root.where());
  if (sizes.cached && !family.caches) refuse_cache(family);
  Program program = family.program({.config = Config(root), .name = name_, .sizes = sizes});
  program.origin = file_;
  program.usual = {.dtype = Config(root).text({"dtype", "torch_dtype"}, ""),
                   .lora_targets = {},
                   .generates = family.caches};
  for (const std::string_view target : family.lora_targets)
    if (!target.empty()) program.usual.lora_targets.emplace_back(target);
  return program;
}

}  // namespace metaprof
