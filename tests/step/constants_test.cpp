// Tensors that the source makes of numbers: `torch.tensor(0.5)`, the list in `x[[0, 2]]`.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "program/source/host_constants.h"
#include "step/eager/interpreter.h"
#include "step/placement.h"

namespace metaprof {
namespace {

class Model {
 public:
  ValueId input(ProgramInput::Kind kind, const std::string& name, DType dtype, const Sizes& sizes) {
    const ValueId value = add(dtype, sizes);
    program.inputs.push_back({.kind = kind, .value = value, .name = name, .constant = {}});
    program.graph.inputs.push_back(value);
    return value;
  }
  ValueId lifted(DType dtype, const Sizes& sizes) {
    const std::string number = std::to_string(program.inputs.size());
    return input(ProgramInput::Kind::constant_tensor, "block.lifted_tensor_" + number, dtype, sizes);
  }

  // op(first, [second]) or op(first, second)
  ValueId call(const std::string& op, ValueId first, ValueId second, bool list) {
    GraphNode node;
    node.op = op;
    node.operands.resize(2);
    node.operands[0].kind = Operand::Kind::value;
    node.operands[0].value = first;
    node.operands[0].name = "self";
    node.operands[1].name = list ? "indices" : "other";
    node.operands[1].kind = list ? Operand::Kind::values : Operand::Kind::value;
    if (list) {
      node.operands[1].values = {second};
    } else {
      node.operands[1].value = second;
    }
    const ValueId made = add(DType::f32, {});
    node.targets.push_back({.list = false, .values = {made}});
    program.graph.nodes.push_back(node);
    return made;
  }
  bool on_host(size_t i, bool exported_on_host = true) const {
    Program told = program;
    find_host_constants(told, standard_registry(), exported_on_host);
    return told.graph.values[size_t(program.inputs[i].value)].tensor->device == Device{DeviceType::cpu};
  }

  Program program;

 private:
  ValueId add(DType dtype, const Sizes& sizes) {
    ValueFacts facts;
    facts.tensor.emplace();
    facts.tensor->dtype = dtype;
    facts.tensor->sizes = sizes;
    facts.tensor->strides = contiguous_strides(sizes);
    program.graph.values.push_back(facts);
    return static_cast<ValueId>(program.graph.values.size()) - 1;
  }
};

TEST(Constants, NumbersAndListsOfIndicesAreMadeOnTheHost) {
  Model model;
  const ValueId x = model.input(ProgramInput::Kind::user, "x", DType::f32, {5, 6});
  const ValueId half = model.lifted(DType::f32, {}), places = model.lifted(DType::i64, {2}),
                factors = model.lifted(DType::f32, {6}), both = model.lifted(DType::i64, {2});
  model.input(ProgramInput::Kind::constant_tensor, "block.table", DType::f32, {});
  model.call("aten::mul.Tensor", x, half, false);
  model.call("aten::mul.Tensor", x, factors, false);
  model.call("aten::index.Tensor", x, places, true);
  model.call("aten::index.Tensor", x, both, true);
  model.call("aten::add.Tensor", x, both, false);
  EXPECT_FALSE(model.on_host(0));
  EXPECT_TRUE(model.on_host(1));
  EXPECT_TRUE(model.on_host(2));
  EXPECT_FALSE(model.on_host(3)) << "takes part in arithmetic";
  EXPECT_FALSE(model.on_host(4));
  EXPECT_FALSE(model.on_host(5)) << "an attribute of the model: nothing that its source makes";
}

// torch.tensor(0.5, device=x.device), and torch.tensor(0.5), in a model that was exported on meta.
TEST(Constants, NumbersAreOnTheDeviceWhereTheExporterSaysSo) {
  Model model;
  const ValueId there = model.lifted(DType::f32, {}), here = model.lifted(DType::f32, {});
  model.program.graph.values[size_t(here)].tensor->device = Device{DeviceType::cpu};
  model.call("aten::mul.Tensor", there, here, false);
  EXPECT_FALSE(model.on_host(0, false));
  EXPECT_TRUE(model.on_host(1, false));
  EXPECT_TRUE(model.on_host(0, true)) << "exported on the host, where the exporter puts every number";
}

// In a model of 16 bits: `register_buffer("scale", torch.tensor(8.0), persistent=False)` is one, what a
// constructor computes (rotary frequencies) has the type that it was computed in.
TEST(Constants, ABufferThatIsANumberHasTheDefaultType) {
  Model model;
  model.input(ProgramInput::Kind::buffer, "scale", DType::f32, {});
  model.input(ProgramInput::Kind::buffer, "frequencies", DType::f32, {32});
  for (ProgramInput& input : model.program.inputs) input.persistent = false;
  StepOptions options;
  options.precision = Precision::bf16;
  const auto session = make_session(platform_named("h200"));
  const PlacedTensors placed = place_tensors(*session, model.program, options);
  EXPECT_EQ(placed.inputs[0].tensor().dtype(), DType::bf16);
  EXPECT_EQ(placed.inputs[1].tensor().dtype(), DType::f32);
}

// Sizes of what lives on the device once x[indices] has run, in the order in which it was made.
std::vector<int64_t> bytes_of_device_after_indexing(Model& model, ValueId x, ValueId indices) {
  const ValueId rows = model.call("aten::index.Tensor", x, indices, true);
  Operand output;
  output.kind = Operand::Kind::value;
  output.value = rows;
  model.program.graph.outputs.push_back(output);
  find_host_constants(model.program, standard_registry(), true);
  const auto session = make_session(platform_named("h200"));
  PlacedTensors placed = place_tensors(*session, model.program, {});
  placed.inputs[0].tensor()->requires_grad = true;
  const size_t begin = session->trace.events.size();
  Interpreter interpreter(*session, model.program, {});
  const std::vector<Value> outputs = interpreter.run(placed.inputs);
  std::map<uint32_t, int64_t> alive;
  for (size_t i = begin; i < session->trace.events.size(); ++i) {
    const Event& event = session->trace.events[i];
    if (event.kind == Event::Kind::alloc && session->trace.storages[event.id].device.is_cuda())
      alive[event.id] = session->trace.bytes(event.id).count;
    if (event.kind == Event::Kind::free) alive.erase(event.id);
  }
  std::vector<int64_t> bytes;
  bytes.reserve(alive.size());
  for (const auto& [id, count] : alive) bytes.push_back(count);
  return bytes;
}

// x[[0, 2]]: the list is moved to the device (2 · 8 bytes) before it indexes, and that tensor is what the
// node keeps.
TEST(Constants, AListMovesBeforeItIndexes) {
  Model model;
  const ValueId x = model.input(ProgramInput::Kind::user, "x", DType::f32, {5, 6});
  const ValueId places = model.lifted(DType::i64, {2});
  EXPECT_EQ(bytes_of_device_after_indexing(model, x, places), (std::vector<int64_t>{16, 48}));
}

// x[table + table] of a table on the host: the operator moves the tensor of the host, and the node keeps the one of the host.
TEST(Constants, ATensorOfTheHostIsMovedByTheOperator) {
  Model model;
  const ValueId x = model.input(ProgramInput::Kind::user, "x", DType::f32, {5, 6});
  const ValueId there = model.input(ProgramInput::Kind::constant_tensor, "block.table", DType::i64, {2});
  model.program.graph.values[size_t(there)].tensor->device = Device{DeviceType::cpu};
  const ValueId places = model.call("aten::add.Tensor", there, there, false);
  EXPECT_EQ(bytes_of_device_after_indexing(model, x, places), (std::vector<int64_t>{48}));
}

}  // namespace
}  // namespace metaprof
