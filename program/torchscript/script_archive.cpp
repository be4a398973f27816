#include "program/torchscript/script_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/formats/file.h"

namespace metaprof::script {
namespace {

constexpr std::string_view kCode = "code/", kModule = "data.pkl", kConstants = "constants.pkl";

struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr StorageName kStorages[] = {
    {"torch FloatStorage", DType::f32},        {"torch HalfStorage", DType::f16},
    {"torch BFloat16Storage", DType::bf16},    {"torch DoubleStorage", DType::f64},
    {"torch LongStorage", DType::i64},         {"torch IntStorage", DType::i32},
    {"torch ShortStorage", DType::i16},        {"torch CharStorage", DType::i8},
    {"torch ByteStorage", DType::u8},          {"torch BoolStorage", DType::b8},
    {"torch ComplexFloatStorage", DType::c64}, {"torch ComplexDoubleStorage", DType::c128},
};

// "net/" of "net/data.pkl"; nothing: the archive has no code of torch.jit.
std::optional<std::string> prefix_of(const Archive& archive) {
  for (const Archive::Entry& entry : archive.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash == std::string::npos || entry.name.compare(slash + 1, kModule.size() + 1, kModule) != 0)
      continue;
    std::string prefix = entry.name.substr(0, slash + 1);
    const std::string code = prefix + std::string(kCode);
    if (std::ranges::any_of(archive.entries(),
                            [&](const auto& other) { return other.name.starts_with(code); }))
      return prefix;
  }
  return std::nullopt;
}

// "net/code/__torch__/torch/nn.py" defines "__torch__.torch.nn".
std::string module_of(std::string_view path) {
  std::string module(path.substr(0, path.size() - std::string_view(".py").size()));
  std::ranges::replace(module, '/', '.');
  return module;
}

Sizes integers(const PickleValue& tuple) {
  Sizes numbers;
  for (size_t i = 0; i < tuple.size(); ++i) numbers.push_back(tuple.element(i).integer());
  return numbers;
}

std::unique_ptr<Pickle> pickled(const Archive& archive, const Archive::Entry& entry) {
  const EntryText text = archive.read(entry);
  std::string name = fmt::format("{}: {}", archive.path(), entry.name);
  // NOLINTNEXTLINE(modernize-make-unique): a Pickle is not moved
  return std::unique_ptr<Pickle>(new Pickle(Pickle::with_calls(std::string(text.view()), std::move(name))));
}

}  // namespace

bool is_script_archive(const std::string& path) {
  if (!is_there(path)) return false;
  try {
    return prefix_of(Archive(path)).has_value();
  } catch (const Error&) {
    return false;  // whoever reads it as something else says what is wrong
  }
}

ScriptArchive::ScriptArchive(const std::string& path) : path_(path), archive_(path) {
  const std::optional<std::string> prefix = prefix_of(archive_);
  if (!prefix)
    fail("{}: has no code: save the model with torch.jit.save(torch.jit.script(model), FILE)", path);
  prefix_ = *prefix;
  const std::string code = prefix_ + std::string(kCode);
  for (const Archive::Entry& entry : archive_.entries()) {
    if (!entry.name.starts_with(code) || !entry.name.ends_with(".py")) continue;
    const std::string inner = entry.name.substr(code.size());
    const EntryText text = archive_.read(entry);
    parse_code(text.view(), module_of(inner), fmt::format("{}: {}", path, inner), code_);
  }
  module_ = pickled(archive_, *archive_.find(prefix_ + std::string(kModule)));
  if (const Archive::Entry* entry = archive_.find(prefix_ + std::string(kConstants)))
    constants_ = pickled(archive_, *entry);
}

std::optional<PickleValue> ScriptArchive::constants() const {
  if (!constants_) return std::nullopt;
  return constants_->root();
}

std::optional<double> ScriptArchive::number_in(const StoredTensor& constant) const {
  if (!constant.sizes.empty() || constant.offset != 0 || constant.device.is_cuda()) return std::nullopt;
  const Archive::Entry* entry = archive_.find(prefix_ + "constants/" + constant.storage);
  if (!entry || entry->size != static_cast<uint64_t>(element_size(constant.dtype))) return std::nullopt;
  const EntryText bytes = archive_.read(*entry);
  const auto as = [&]<class T>(T number) {
    std::memcpy(&number, bytes.view().data(), sizeof(T));
    return static_cast<double>(number);
  };
  switch (constant.dtype) {
    case DType::f32: return as(float());
    case DType::f64: return as(double());
    case DType::i32: return as(int32_t());
    case DType::i64: return as(int64_t());
    case DType::b8: return as(uint8_t());
    default: return std::nullopt;
  }
}

bool is_stored_tensor(const PickleValue& value) {
  return value.kind() == PickleKind::call && value.element(0).kind() == PickleKind::global &&
         value.element(0).text().starts_with("torch._utils _rebuild_");
}

StoredTensor stored_tensor(const PickleValue& call) {
  const std::string_view callee = call.element(0).text();
  if (callee != "torch._utils _rebuild_tensor_v2") {
    const std::string message =
        "a tensor of torch._utils._rebuild_tensor_v2 (others, as quantized ones, are not read)";
    call.reject(message);
  }
  const PickleValue arguments = call.element(1);
  const PickleValue storage = arguments.element(0);
  if (storage.kind() != PickleKind::persistent) storage.reject("a storage");
  const PickleValue described = storage.element(0);  // ("storage", FloatStorage, "0", "cpu", 864)
  StoredTensor tensor;
  const auto named = std::ranges::find(kStorages, described.element(1).text(), &StorageName::name);
  if (named == std::end(kStorages))
    described.element(1).reject("the class of a storage, as torch.FloatStorage");
  tensor.dtype = named->dtype;
  tensor.storage = described.element(2).text();
  tensor.device =
      described.element(3).text().starts_with("cuda") ? Device{DeviceType::cuda, 0} : Device{DeviceType::cpu};
  tensor.offset = arguments.element(1).integer();
  tensor.sizes = integers(arguments.element(2));
  tensor.strides = integers(arguments.element(3));
  tensor.requires_grad = arguments.element(4).integer() != 0;
  if (tensor.sizes.size() != tensor.strides.size() ||
      std::ranges::any_of(tensor.sizes, [](int64_t size) { return size < 0; }))
    arguments.element(2).reject("sizes that a tensor has");
  return tensor;
}

}  // namespace metaprof::script
