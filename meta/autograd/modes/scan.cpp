#include "meta/autograd/modes/joint_function.h"
#include "meta/autograd/modes/loops.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

using Values = std::vector<Value>;

// generic_scan of torch/_higher_order_ops/scan.py: the function is called once more than there are slices, to see what it
// gives, and results are scattered into tensors for all calls.
class Scan {
 public:
  Scan(Session& session, const RegionBody& body, const Values& inputs, ScanInputs of)
      : session_(session), body_(body), inputs_(inputs), of_(of) {}

  Values run() {
    Values given = inputs_;
    for (size_t i = of_.carried; i < of_.carried + of_.sliced; ++i)
      given[i] = Value(call<"select_copy.int">(session_, inputs_[i].tensor(), 0, 0));
    const Values example = body_(given);
    given = inputs_;
    make_places(example);
    Values results;
    for (int64_t slice = 0; slice < slices(); ++slice) {
      for (size_t i = of_.carried; i < of_.carried + of_.sliced; ++i)
        given[i] = slice_of(session_, inputs_[i], slice);
      results = body_(given);
      for (size_t i = 0; i < of_.carried; ++i) given[i] = results[i];
      for (size_t i = of_.carried; i < results.size(); ++i) put(results[i].tensor(), i - of_.carried, slice);
    }
    results.resize(of_.carried);
    for (Tensor& all : all_) results.emplace_back(std::move(all));
    return results;
  }

 private:
  int64_t slices() const { return slices_of(std::span(inputs_).subspan(of_.carried, of_.sliced)); }

  void make_places(const Values& example) {
    for (size_t i = of_.carried; i < example.size(); ++i) {
      const Tensor& one = example[i].tensor();
      Sizes sizes{slices()};
      for (const int64_t size : one.sizes()) sizes.push_back(size);
      all_.push_back(call<"zeros">(session_, sizes, one.dtype(), Value(), one.device()));
    }
    for (size_t i = of_.carried; i < example.size(); ++i) {
      const Tensor ones = call<"ones_like">(session_, example[i].tensor(), DType::i64);
      places_.push_back(call<"unsqueeze">(session_, ones, 0));
    }
  }

  void put(const Tensor& result, size_t i, int64_t slice) {
    const Tensor place = call<"mul.Tensor">(session_, places_[i], slice);
    call<"scatter_.src">(session_, all_[i], 0, place, call<"unsqueeze">(session_, result, 0));
  }

  Session& session_;
  const RegionBody& body_;
  const Values& inputs_;
  const ScanInputs of_;
  std::vector<Tensor> all_, places_;  // per result that is not carried
};

}  // namespace

std::vector<Value> scan(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                        ScanInputs of) {
  return Scan(session, body, inputs, of).run();
}

}  // namespace metaprof
