#include "program/edits/lora.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/option_value.h"
#include "program/edits/linear_calls.h"
#include "program/edits/program_writer.h"

namespace metaprof {
namespace {

constexpr int64_t kMostRank = 65536;

template <class Number>
Number number_of(std::string_view key, std::string_view text, Number least, Number most) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || !(number >= least && number <= most))
    fail("--lora: {}={}: expected a number from {} to {}", key, text, least, most);
  return number;
}

void set(LoraOptions& options, std::string_view key, std::string_view text) {
  if (key == "r") {
    options.rank = number_of<int64_t>(key, text, 1, kMostRank);
  } else if (key == "alpha") {
    options.alpha = number_of<double>(key, text, 0, 1e6);
  } else if (key == "dropout") {
    options.dropout = number_of<double>(key, text, 0, 1);
  } else if (key == "dtype") {
    if (text != "fp32" && text != "model") fail("--lora: dtype={}: expected fp32 or model", text);
    options.in_32bits = text == "fp32";
  } else if (key == "targets") {
    if (text.empty()) fail("--lora: targets= names no module");
    options.all_linear = options.all_linear || text == "all-linear";
    options.targets.emplace_back(text);
  } else {
    fail(
        "--lora: there is no '{}'; there are r, alpha, dropout, targets and dtype, as "
        "r=16,targets=q_proj,v_proj{}",
        key, did_you_mean(std::string(key), {"alpha", "dropout", "targets", "dtype"}));
  }
}

// check_target_module_exists of peft/tuners/tuners_utils.py
bool is_target(const LoraOptions& options, const std::string& path, const std::string& head) {
  if (options.all_linear) return path != head;
  return std::ranges::any_of(options.targets, [&](const std::string& target) {
    return path == target || path.ends_with("." + target);
  });
}

class LoraWriter {
 public:
  LoraWriter(Program& program, const LoraOptions& options, bool autocast)
      : program_(program), options_(options), autocast_(autocast), writer_(program) {}

  void run() {
    freeze();
    const std::vector<LinearModule> modules = linear_modules(program_);
    const std::string head = head_of(modules);
    for (const LinearModule& module : modules)
      if (is_target(options_, module.path, head)) adapt(module);
    if (adapted_.empty()) refuse(modules);
    writer_.finish();
  }

 private:
  void freeze() {
    for (const ProgramInput& input : program_.inputs)
      if (input.kind == ProgramInput::Kind::parameter && input.value != kNoValue)
        program_.graph.values[static_cast<size_t>(input.value)].tensor->requires_grad = false;
  }

  [[noreturn]] void refuse(const std::vector<LinearModule>& modules) const {
    std::vector<std::string> names;
    for (const LinearModule& module : modules) {
      std::string name = module.path.substr(module.path.rfind('.') + 1);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    if (names.empty())
      fail("--lora: {} has no linear modules that adapters can stand beside", program_.origin);
    fail("--lora: no linear module of {} is called {}; there are {}", program_.origin,
         fmt::join(options_.targets, " or "), fmt::join(names, ", "));
  }

  void adapt(const LinearModule& module) {
    if (module.calls.empty())
      fail(
          "--lora: {} is not called as a module, so that no adapter can stand beside it: leave it out of the "
          "targets",
          module.path);
    const std::string path = module.path, type = program_.module_types.at(path);
    adapted_.push_back(path);
    rename(path);
    few_bits_ = type.starts_with("bitsandbytes.");
    const bool four_bits = type.ends_with("Linear4bit");
    const auto add = [&](std::string_view name, std::string_view its_type) {
      writer_.add_module(path, fmt::format("{}.{}", path, name), std::string(its_type));
    };
    program_.module_types[path] =
        few_bits_ ? fmt::format("peft.tuners.lora.bnb.{}", four_bits ? "Linear4bit" : "Linear8bitLt")
                  : std::string("peft.tuners.lora.layer.Linear");
    add("base_layer", type);
    add("lora_dropout", kDict);
    add("lora_dropout.default",
        options_.dropout > 0 ? "torch.nn.modules.dropout.Dropout" : "torch.nn.modules.linear.Identity");
    add("lora_A", kDict);
    add("lora_A.default", kLinear);
    add("lora_B", kDict);
    add("lora_B.default", kLinear);
    const auto weight = [&](std::string_view name, Sizes sizes) {
      return writer_.add_state(ProgramInput::Kind::parameter, fmt::format("{}.{}.default.weight", path, name),
                               std::move(sizes), DType::f32, true, options_.in_32bits);
    };
    down_ = weight("lora_A", {options_.rank, module.in});
    up_ = weight("lora_B", {module.out, options_.rank});
    for (const LinearCall& call : module.calls) write(path, type, call, four_bits);
  }

  // The module's own state is that of its base layer.
  void rename(const std::string& path) {
    for (ProgramInput& input : program_.inputs)
      if (input.name.starts_with(path + ".")) input.name.insert(path.size(), ".base_layer");
  }

  TensorFacts like(ValueId value, int64_t width, DType dtype) const {
    const TensorFacts& given = writer_.facts(value);
    TensorFacts facts;
    facts.dtype = dtype;
    facts.sizes = given.sizes;
    if (!facts.sizes.empty()) facts.sizes.back() = width;
    facts.strides = contiguous_strides(facts.sizes);
    facts.device = given.device;
    return facts;
  }

  // Layer.forward. What the base layer gave keeps a new name, so that those who use the result find the sum.
  void write(const std::string& path, const std::string& type, const LinearCall& call, bool four_bits) {
    std::vector<GraphNode>& nodes = program_.graph.nodes;
    const GraphNode& last = nodes[call.end - 1];
    const int32_t here = last.modules;
    source_ = last.source;
    const int32_t base = writer_.stack_within(here, path + ".base_layer", type);
    for (size_t i = call.begin; i < call.end; ++i) nodes[i].modules = base;
    const TensorFacts result = writer_.facts(call.result);
    const DType dtype = result.dtype;
    const int64_t width = result.sizes.empty() ? 0 : result.sizes.back();
    std::vector<ValueId> dropped_at_end = writer_.take_held_by_caller(call.begin, call.end);
    ValueId sum = writer_.value(result);
    rename(call, sum);
    out_ = &writer_.behind[call.end - 1];
    if (four_bits) sum = add("aten::clone", {operand_of(sum)}, result, here, {sum});

    ValueId x = call.input;
    const bool converts = !(few_bits_ && autocast_);
    if (converts && options_.in_32bits) {
      x = convert(x, DType::f32, true, here, {});
      dropped_at_end.push_back(x);
    }
    const DType narrow = options_.in_32bits ? DType::f32 : dtype;
    ValueId taken = x;
    if (options_.dropout > 0)
      taken =
          add("aten::dropout", {operand_of(x), operand_of(Value(options_.dropout)), operand_of(Value(true))},
              writer_.facts(x), within(here, path, "lora_dropout", "torch.nn.modules.dropout.Dropout"), {});
    const ValueId down =
        add("aten::linear", {operand_of(taken), operand_of(down_)}, like(call.input, options_.rank, narrow),
            within(here, path, "lora_A", kLinear), taken == x ? std::vector<ValueId>{} : std::vector{taken});
    const ValueId up = add("aten::linear", {operand_of(down), operand_of(up_)},
                           like(call.result, width, narrow), within(here, path, "lora_B", kLinear), {down});
    const double scaling = options_.alpha / static_cast<double>(options_.rank);
    ValueId scaled = add("aten::mul.Tensor", {operand_of(up), operand_of(Value(scaling))},
                         like(call.result, width, narrow), here, {up});
    if (few_bits_) {
      if (converts) scaled = convert(scaled, dtype, false, here, {scaled});
      add_into(call.result, sum, scaled, here, {sum});
      dropped_at_end.push_back(scaled);
    } else {
      const ValueId wide = add("aten::add.Tensor", {operand_of(sum), operand_of(scaled)},
                               like(call.result, width, narrow), here, {scaled, sum});
      out_->push_back(conversion(wide, call.result, dtype, false, here));
      out_->back().drops = {wide};
    }
    auto& drops = out_->back().drops;
    drops.insert(drops.end(), dropped_at_end.begin(), dropped_at_end.end());
  }

  // Another value for the result within the call.
  void rename(const LinearCall& call, ValueId now) {
    const auto replace = [&](std::vector<ValueId>& values) {
      std::ranges::replace(values, call.result, now);
    };
    for (size_t i = call.begin; i < call.end; ++i) {
      GraphNode& node = program_.graph.nodes[i];
      for (Operand& operand : node.operands) replace(operand.values);
      for (Target& target : node.targets) replace(target.values);
    }
  }

  int32_t within(int32_t here, const std::string& path, std::string_view name, const std::string& type) {
    return writer_.stack_within(here, fmt::format("{}.{}.default", path, name), type);
  }

  ValueId add(std::string op, std::vector<Operand> operands, const TensorFacts& facts, int32_t modules,
              std::vector<ValueId> drops) {
    const ValueId made = writer_.value(facts);
    out_->push_back(call_of(std::move(op), std::move(operands), made, modules, source_));
    out_->back().drops = std::move(drops);
    return made;
  }

  void add_into(ValueId result, ValueId sum, ValueId scaled, int32_t here, std::vector<ValueId> drops) {
    out_->push_back(
        call_of("aten::add.Tensor", {operand_of(sum), operand_of(scaled)}, result, here, source_));
    out_->back().drops = std::move(drops);
  }

  // `named`: to this dtype in every precision, else to the model's.
  GraphNode conversion(ValueId x, ValueId result, DType dtype, bool named, int32_t here) const {
    GraphNode node =
        call_of("aten::to.dtype", {operand_of(x), operand_of(Value(dtype))}, result, here, source_);
    node.dtype_named = named;
    if (!named) node.dtype_of = x;
    return node;
  }
  ValueId convert(ValueId x, DType dtype, bool named, int32_t here, std::vector<ValueId> drops) {
    TensorFacts facts = writer_.facts(x);
    facts.dtype = dtype;
    const ValueId made = writer_.value(facts);
    out_->push_back(conversion(x, made, dtype, named, here));
    out_->back().drops = std::move(drops);
    return made;
  }

  static constexpr const char* kLinear = "torch.nn.modules.linear.Linear";
  static constexpr const char* kDict = "torch.nn.modules.container.ModuleDict";

  Program& program_;
  const LoraOptions& options_;
  bool autocast_, few_bits_ = false;
  ProgramWriter writer_;
  std::vector<std::string> adapted_;
  std::vector<GraphNode>* out_ = nullptr;
  ValueId down_ = kNoValue, up_ = kNoValue;
  int32_t source_ = -1;
};

}  // namespace

LoraOptions parse_lora(std::string_view text) {
  LoraOptions options;
  std::string_view key;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    if (const size_t equals = word.find('='); equals != std::string_view::npos) {
      key = word.substr(0, equals);
      word.remove_prefix(equals + 1);
    } else if (key != "targets") {
      fail("--lora: '{}' is no KEY=VALUE, as r=16,targets=q_proj,v_proj", word);
    }
    set(options, key, word);
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  return options;
}

void add_lora(Program& program, const LoraOptions& options, bool autocast) {
  if (program.captured)
    fail("--lora: {} is a run that was captured: add the adapters in its source and capture it again",
         program.origin);
  LoraOptions asked = options;
  if (asked.targets.empty() && !asked.all_linear) asked.targets = program.usual.lora_targets;
  if (asked.targets.empty() && !asked.all_linear)
    fail(
        "--lora: targets are missing, as targets=q_proj,v_proj or targets=all-linear; peft has none for this "
        "model");
  LoraWriter(program, asked, autocast).run();
}

}  // namespace metaprof
