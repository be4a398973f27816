#include "meta/autograd/modes/branch.h"

#include "meta/autograd/modes/joint_function.h"

namespace metaprof {
namespace {

// PyTorch traces both functions.
void trace_both(Session& session, std::span<const Tensor> tensors) {
  trace_on_copies(session, tensors);
  trace_on_copies(session, tensors);
}

class BranchFunction final : public PartFunction {
 public:
  BranchFunction(Session& session, const Value& condition, RegionBody body, const std::vector<Value>& inputs)
      : PartFunction(session, "CondAutogradOpBackward", std::move(body), inputs),
        condition_(condition),
        inputs_(inputs) {}

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    const std::vector<Value> inputs = unpack();
    std::vector<Tensor> given = tensors_in(inputs);
    for (const Tensor& gradient : incoming) given.push_back(gradient);
    trace_both(session, given);
    return gradients_of_part(session, before_, body_, inputs, {incoming.begin(), incoming.end()});
  }

 private:
  Value condition_;            // as long as the node lives, not only until its backward
  std::vector<Value> inputs_;  // also: the function that computes gradients has them (utils.py, create_bw_fn)
};

}  // namespace

std::vector<Value> branch(Session& session, const Value& condition, const RegionBody& chosen,
                          const std::vector<Value>& inputs) {
  if (!needs_gradients(session, inputs)) return chosen(inputs);
  trace_both(session, tensors_in(inputs));  // for the operator's schema, which autograd alone asks for
  return run_as_function(session, make<BranchFunction>(session, condition, chosen, inputs), chosen, inputs);
}

}  // namespace metaprof
