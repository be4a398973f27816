#include "core/error.h"
#include "meta/autograd/modes/joint_function.h"
#include "meta/autograd/modes/loops.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

std::vector<Value> mapped(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                          size_t sliced) {
  std::vector<Value::Tensors> slices;
  for (size_t i = 0; i < sliced; ++i)
    slices.push_back(call_all<"unbind.int">(session, inputs[i].tensor(), 0).tensors());
  std::vector<std::vector<Value>> calls;
  for (int64_t slice = 0; slice < slices_of({inputs.begin(), sliced}); ++slice) {
    std::vector<Value> given = inputs;
    for (size_t i = 0; i < sliced; ++i) given[i] = Value(slices[i].at(size_t(slice)));
    calls.push_back(body(given));
  }
  return stacked(session, calls);
}

class MapFunction final : public PartFunction {
 public:
  MapFunction(Session& session, RegionBody body, const std::vector<Value>& inputs, size_t sliced)
      : PartFunction(session, "MapAutogradOpBackward", std::move(body), inputs), sliced_(sliced) {}

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    const std::vector<Value> inputs = unpack();
    std::vector<Value> given;
    for (size_t i = 0; i < sliced_; ++i) given.push_back(leaf(inputs[i].tensor(), false));
    for (const Tensor& gradient : incoming) given.emplace_back(gradient);
    const size_t sliced = given.size();
    given.insert(given.end(), inputs.begin() + ptrdiff_t(sliced_), inputs.end());
    const std::vector<Tensor> examples = examples_of(given, sliced);
    trace_on_copies(session, examples);
    const auto of_slice = [&](const std::vector<Value>& values) {
      const auto gradients = values.begin() + ptrdiff_t(sliced_), others = values.begin() + ptrdiff_t(sliced);
      std::vector<Value> primals;
      for (auto slice = values.begin(); slice != gradients; ++slice)
        primals.push_back(leaf(slice->tensor(), inputs[primals.size()].tensor().requires_grad()));
      primals.insert(primals.end(), others, values.end());
      return gradients_of_slice(primals, tensors_in({gradients, others}));
    };
    return as_gradients(inputs, mapped(session, of_slice, given, sliced));
  }

 private:
  static Value leaf(const Tensor& tensor, bool requires_grad) {
    Tensor made = alias(tensor);
    made->requires_grad = requires_grad;
    return Value(std::move(made));
  }

  // What the function for backward is traced on: a slice of a copy of each tensor; they live until it has run.
  std::vector<Tensor> examples_of(const std::vector<Value>& given, size_t sliced) {
    std::vector<Tensor> copies, examples;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is_tensor()) continue;
      const Tensor& tensor = given[i].tensor();
      copies.push_back(call<"empty_strided">(session, tensor.sizes(), tensor.strides(), tensor.dtype(),
                                             Value(), tensor.device()));
      examples.push_back(i < sliced ? call<"select_copy.int">(session, copies.back(), 0, 0) : copies.back());
    }
    return examples;
  }

  std::vector<Value> gradients_of_slice(const std::vector<Value>& primals,
                                        const std::vector<Tensor>& incoming) {
    std::vector<Value> found;
    for (Tensor& gradient : gradients_of_part(session, before_, body_, primals, incoming))
      if (gradient.defined()) found.emplace_back(std::move(gradient));
    return found;
  }

  static Gradients as_gradients(const std::vector<Value>& inputs, std::vector<Value> found) {
    Gradients outgoing;
    size_t next = 0;
    for (const Value& input : inputs)
      outgoing.push_back(input.is_tensor() ? found[next++].tensor() : Tensor());
    return outgoing;
  }

  size_t sliced_;
};

}  // namespace

Value slice_of(Session& session, const Value& tensor, int64_t i) {
  return Value(call<"select.int">(session, tensor.tensor(), 0, i));
}

int64_t slices_of(std::span<const Value> inputs) {
  if (inputs.empty() || !inputs[0].is_tensor() || inputs[0].tensor().dim() == 0 ||
      inputs[0].tensor().size(0) == 0)
    fail("a function is called for each slice of a tensor, and there is no tensor that has slices");
  return inputs[0].tensor().size(0);
}

std::vector<Value> stacked(Session& session, const std::vector<std::vector<Value>>& calls) {
  std::vector<Value> results;
  for (size_t i = 0; i < calls.at(0).size(); ++i) {
    Value::Tensors tensors;
    for (const std::vector<Value>& one : calls) tensors.push_back(one[i].tensor());
    results.emplace_back(call<"stack">(session, Value(std::move(tensors)), 0));
  }
  return results;
}

std::vector<Value> map_over_slices(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                                   size_t sliced) {
  const auto run = [&session, body, sliced](const std::vector<Value>& given) {
    return mapped(session, body, given, sliced);
  };
  if (!needs_gradients(session, inputs)) return run(inputs);
  return run_as_function(session, make<MapFunction>(session, body, inputs, sliced), run, inputs);
}

}  // namespace metaprof
