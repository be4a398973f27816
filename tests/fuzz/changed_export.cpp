#include "tests/fuzz/changed_export.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/formats/archive.h"
#include "tests/fuzz/random_values.h"
#include "tests/stored_archive.h"

namespace metaprof {
namespace {

using nlohmann::json;

class ExportChanger {
 public:
  ExportChanger(json& root, Random& random)
      : graph_(root["graph_module"]["graph"]),
        signature_(root["graph_module"]["signature"]),
        random_(random) {}

  void change() {
    switch (random_.below(10)) {
      case 0:
      case 1: return change_facts();
      case 2: return change_node();
      case 3: return change_signature();
      default: return change_argument();
    }
  }

 private:
  json* any(json& list) {
    if (!list.is_structured() || list.empty()) return nullptr;
    auto place = list.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(random_.below(list.size())));
    return &*place;
  }

  std::string any_name() {
    json& values = graph_["tensor_values"];
    if (values.empty()) return "x";
    auto place = values.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(random_.below(values.size())));
    return place.key();
  }

  json integers() {
    json list = json::array();
    for (size_t i = random_.below(5); i > 0; --i) list.push_back(random_integer(random_));
    return list;
  }

  json names(const char* kind) {
    json list = json::array();
    for (size_t i = random_.below(4); i > 0; --i) {
      json name{{"name", any_name()}};
      list.push_back(*kind ? json{{kind, name}} : name);
    }
    return list;
  }

  // Of any kind that exports have.
  json argument() {
    switch (random_.below(15)) {
      case 0: return {{"as_none", true}};
      case 1: return {{"as_float", random_.one_of({0.0, 0.5, -1.0, 1e300})}};
      case 2: return {{"as_float", random_.one_of({"Infinity", "NaN", "-Infinity"})}};
      case 3: return {{"as_bool", random_.once_in(2)}};
      case 4: return {{"as_ints", integers()}};
      case 5: return {{"as_tensors", names("")}};
      case 6: return {{"as_optional_tensors", names("as_tensor")}};
      case 7: return {{"as_string", random_.one_of({"", "mean", "\x1b[31m", "\xc2\x9b"})}};
      case 8: return {{"as_scalar_type", random_.below(35)}};
      case 9:
        return {
            {"as_device", {{"type", random_.one_of({"cpu", "cuda", "meta", "xla"})}, {"index", nullptr}}}};
      case 10: return {{"as_sym_int", {{"as_int", random_integer(random_)}}}};
      case 11: return {{"as_layout", random_.below(9)}};
      case 12: return {{"as_memory_format", random_.below(5)}};
      case 13: return {{"as_int", random_integer(random_)}};
      default: return {{"as_tensor", {{"name", any_name()}}}};
    }
  }

  json* any_node() { return any(graph_["nodes"]); }

  void change_argument() {
    json* node = any_node();
    if (!node) return;
    if (json* input = any((*node)["inputs"])) (*input)["arg"] = argument();
  }

  void change_facts() {
    json* facts = any(graph_["tensor_values"]);
    if (!facts) return;
    const json size{{"as_int", random_.one_of(std::vector<int64_t>{0, 1, 2, 3, 7, 1000, 1 << 20})}};
    switch (random_.below(6)) {
      case 0: (*facts)["dtype"] = random_.below(35); return;
      case 1:
        if (json* one = any((*facts)["sizes"])) *one = size;
        return;
      case 2: (*facts)["sizes"].push_back(size); return;
      case 3:
        (*facts)["sizes"].push_back(size);
        (*facts)["strides"].push_back({{"as_int", 1}});
        return;
      case 4: (*facts)["requires_grad"] = random_.once_in(2); return;
      default:
        if (json* one = any((*facts)["strides"])) *one = size;
    }
  }

  void change_node() {
    json &nodes = graph_["nodes"], *node = any_node();
    if (!node) return;
    switch (random_.below(6)) {
      case 0: (*node)["target"] = (*any_node())["target"]; return;
      case 1: (*node)["metadata"] = json::object(); return;
      case 2:
        if (json* line = any((*node)["metadata"]))
          *line = random_.one_of({"", ";;,,", "File \"a.py\", line 1, in f\n"});
        return;
      case 3:
        if (!(*node)["inputs"].empty()) (*node)["inputs"].erase(random_.below((*node)["inputs"].size()));
        return;
      case 4: (*node)["inputs"].push_back({{"name", "another"}, {"arg", argument()}, {"kind", 1}}); return;
      default: nodes.erase(random_.below(nodes.size()));
    }
  }

  void change_signature() {
    json& specs = signature_[random_.one_of({"input_specs", "output_specs"})];
    json* one = any(specs);
    if (!one) return;
    if (random_.once_in(2))
      *one = *any(specs);
    else if (json* output = any(graph_["outputs"]))
      *output = argument();
  }

  json &graph_, &signature_;
  Random& random_;
};

}  // namespace

ExportedArchive read_archive(const std::string& path) {
  const Archive archive(path);
  ExportedArchive read;
  for (const Archive::Entry& entry : archive.entries()) {
    std::string text(archive.read(entry).view());
    if (entry.name.ends_with("models/model.json")) {
      read.graph_name = entry.name;
      read.graph = std::make_shared<const json>(json::parse(text));
    } else {
      read.entries.emplace_back(entry.name, std::move(text));
    }
  }
  if (!read.graph) fail("{}: no models/model.json", path);
  return read;
}

std::string changed_export(const ExportedArchive& archive, Random& random) {
  json root = *archive.graph;
  ExportChanger changer(root, random);
  for (size_t i = random.once_in(3) ? 2 + random.below(2) : 1; i > 0; --i) changer.change();
  auto entries = archive.entries;
  entries.emplace_back(archive.graph_name, root.dump(-1, ' ', false, json::error_handler_t::replace));
  return stored_archive(entries);
}

}  // namespace metaprof
