#include "program/safetensors/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/json.h"

namespace metaprof {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // of the reference reader
constexpr uintmax_t kMostIndex = uintmax_t{256} << 20;
constexpr size_t kLengthBytes = 8;
constexpr size_t kMostDimensions = 64;

struct ElementBits {
  std::string_view dtype;
  int64_t bits;
};
constexpr ElementBits kElements[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"F64", 64}, {"I64", 64},    {"U64", 64},    {"C64", 64}};

int64_t bits_of(const std::string& dtype, const std::string& where) {
  for (const ElementBits& element : kElements)
    if (element.dtype == dtype) return element.bits;
  fail("{}: dtype: '{}' is not known", where, dtype);
}

struct HeaderText {
  std::string text;
  uint64_t data = 0;  // bytes behind the header
};

HeaderText read_header(const std::string& path) {
  const uintmax_t size = size_of_file(path, "a safetensors file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path);
  std::array<unsigned char, kLengthBytes> raw{};
  if (size < kLengthBytes || !file.read(reinterpret_cast<char*>(raw.data()), kLengthBytes))
    fail("{}: too short for a safetensors file: {} bytes, and the length of the header alone has {}", path,
         size, kLengthBytes);
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | raw[i];
  if (length > kMostHeader)
    fail("{}: the header is said to have {} bytes; at most {} are allowed", path, length, kMostHeader);
  if (length > size - kLengthBytes)
    fail("{}: the header is said to have {} bytes, and the file has {}", path, length, size);
  HeaderText header{.text = std::string(length, '\0'), .data = size - kLengthBytes - length};
  if (!file.read(header.text.data(), static_cast<std::streamsize>(length))) fail("{}: cannot be read", path);
  return header;
}

struct Placed {
  StoredTensor tensor;
  uint64_t begin = 0, end = 0;
};

uint64_t offset_of(Json value) {
  const int64_t offset = value.integer();
  if (offset < 0) value.reject("an offset is negative");
  return static_cast<uint64_t>(offset);
}

Placed read_tensor(const std::string& name, Json value) {
  Placed placed;
  StoredTensor& tensor = placed.tensor;
  tensor.name = name;
  tensor.dtype = value.at("dtype").string();
  const Json shape = value.at("shape");
  shape.for_each([&](Json size) {
    if (size.integer() < 0) size.reject("a size in a shape is negative");
    if (tensor.shape.size() == kMostDimensions) shape.reject("a shape of more than 64 dimensions");
    tensor.shape.push_back(size.integer());
  });
  std::vector<uint64_t> offsets;
  value.at("data_offsets").for_each([&](Json offset) { offsets.push_back(offset_of(offset)); });
  if (offsets.size() != 2) value.reject("data_offsets: expected two offsets");
  placed.begin = offsets[0];
  placed.end = offsets[1];
  if (placed.end < placed.begin) value.reject("data_offsets: the second offset is before the first");
  const int64_t bits_of_element = bits_of(tensor.dtype, value.where());
  int64_t bits = 0;
  try {
    tensor.elements = numel(tensor.shape);
    bits = multiply(tensor.elements, bits_of_element);
  } catch (const Error& error) {  // more than 64 bits hold
    value.reject(error.what());
  }
  if (bits % 8 != 0) value.reject("shape: the elements do not fill whole bytes");
  tensor.bytes = bits / 8;
  if (placed.end - placed.begin != static_cast<uint64_t>(tensor.bytes))
    value.reject(fmt::format("shape {} of {} has {} bytes, and data_offsets give {}",
                             to_string(SizesView(tensor.shape)), tensor.dtype, tensor.bytes,
                             placed.end - placed.begin));
  return placed;
}

// Names may have escapes, which keys are given with.
std::string unescaped(std::string_view key, const std::string& path) {
  if (key.find('\\') == std::string_view::npos) return std::string(key);
  const std::string text = fmt::format("\"{}\"", key);
  return JsonDocument(text, path).root().string();
}

// Tensors lie one behind the other: neither overlap nor hole.
uint64_t check_places(const std::string& path, std::vector<Placed>& placed) {
  std::ranges::sort(placed, {}, [](const Placed& p) { return std::pair(p.begin, p.end); });
  uint64_t end = 0;
  for (const Placed& p : placed) {
    if (p.begin < end)
      fail("{}: {}: its data overlap those before, which end at byte {}", path, p.tensor.name, end);
    if (p.begin > end)
      fail("{}: {}: its data begin at byte {}, and those before end at {}: there is a hole", path,
           p.tensor.name, p.begin, end);
    end = p.end;
  }
  return end;
}

void add_file(WeightInventory& inventory, const std::string& path) {
  const HeaderText header = read_header(path);
  const JsonDocument document(header.text, path);
  const Json root = document.root();
  if (!root.is_object()) root.reject("the header is no JSON object");
  std::vector<Placed> placed;
  std::set<std::string> names;
  root.for_each_member([&](std::string_view key, Json value) {
    if (key == "__metadata__") {
      value.for_each_member(
          [&](std::string_view name, Json text) { inventory.metadata.emplace(name, text.string()); });
      return;
    }
    if (!names.insert(std::string(key)).second) value.reject("the header has this tensor twice");
    placed.push_back(read_tensor(unescaped(key, path), value));
  });
  const uint64_t end = check_places(path, placed);
  if (header.data == 0 && end > 0) {
    inventory.warnings.push_back(fmt::format("{}: the data are missing; the header alone is there", path));
  } else if (header.data < end) {
    inventory.warnings.push_back(
        fmt::format("{}: truncated: {} of {} bytes of data are there", path, header.data, end));
  } else if (header.data > end) {
    inventory.warnings.push_back(
        fmt::format("{}: {} bytes behind the last tensor belong to none", path, header.data - end));
  }
  const std::string file = std::filesystem::path(path).filename().string();
  inventory.files.push_back(file);
  for (Placed& p : placed) {
    p.tensor.file = file;
    inventory.tensors.push_back(std::move(p.tensor));
  }
}

void read_index(WeightInventory& inventory, const std::string& path) {
  const std::string text = read_file(path, kMostIndex, "an index of weights");
  const JsonDocument document(text, path);
  std::map<std::string, std::string> file_of;
  document.root().at("weight_map").for_each_member([&](std::string_view name, Json file) {
    const std::string named = file.string();
    // Files of an index lie beside it.
    if (named.find('/') != std::string::npos || named.find('\\') != std::string::npos || named.empty())
      file.reject("expected the name of a file beside the index");
    file_of.emplace(name, named);
  });
  std::set<std::string> files;
  for (const auto& [name, file] : file_of) files.insert(file);
  for (const std::string& file : files)
    add_file(inventory, (std::filesystem::path(path).parent_path() / file).string());
  std::map<std::string, std::string> found;
  for (const StoredTensor& tensor : inventory.tensors)
    if (!found.emplace(tensor.name, tensor.file).second)
      fail("{}: two files have the tensor {}", path, tensor.name);
  for (const auto& [name, file] : file_of) {
    const auto there = found.find(name);
    if (there == found.end() || there->second != file)
      fail("{}: {} is not in {}, which the index names", path, name, file);
  }
  if (found.size() != file_of.size())
    inventory.warnings.push_back(fmt::format("{}: the files have {} tensors more than the index names", path,
                                             found.size() - file_of.size()));
  const Json metadata = document.root().find("metadata");
  const Json total = metadata ? metadata.find("total_size") : Json();
  if (total && total.type() == Json::Type::number && total.integer() != inventory.bytes())
    inventory.warnings.push_back(fmt::format("{}: total_size is {}, and the tensors have {} bytes", path,
                                             total.integer(), inventory.bytes()));
}

// The index or the only file of a folder.
std::string file_in(const std::string& folder) {
  std::vector<std::string> indices, files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().string();
    if (name.ends_with(".safetensors.index.json")) indices.push_back(name);
    if (name.ends_with(".safetensors")) files.push_back(name);
  }
  if (indices.size() == 1) return indices[0];
  if (files.size() == 1) return files[0];
  fail("{}: expected one .safetensors file or an index in the folder; there are {} and {}", folder,
       files.size(), indices.size());
}

}  // namespace

int64_t WeightInventory::elements() const {
  int64_t sum = 0;
  for (const StoredTensor& tensor : tensors) sum += tensor.elements;
  return sum;
}

int64_t WeightInventory::bytes() const {
  int64_t sum = 0;
  for (const StoredTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

bool is_weights_path(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
}

WeightInventory read_weights(const std::string& named) {
  std::error_code code;
  const std::string path = std::filesystem::is_directory(named, code) ? file_in(named) : named;
  WeightInventory inventory;
  if (path.ends_with(".json"))
    read_index(inventory, path);
  else
    add_file(inventory, path);
  std::ranges::sort(inventory.tensors, {}, &StoredTensor::name);
  return inventory;
}

}  // namespace metaprof
