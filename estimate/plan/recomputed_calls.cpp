#include "estimate/plan/recomputed_calls.h"

#include <map>
#include <set>

namespace metaprof {
namespace {

constexpr std::string_view kNamespace = "aten::";

bool lies_in(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

class CallReader {
 public:
  CallReader(const Trace& trace, const std::string& module, const Registry& registry, const Rates& rates)
      : trace_(trace), module_(module), registry_(registry), costs_(call_costs(trace, rates)) {}

  std::vector<OperatorCall> read() {
    for (const Event& event : trace_.events) {
      if (event.kind == Event::Kind::phase && event.id > 0) break;  // the first step is enough
      switch (event.kind) {
        case Event::Kind::call: begin(event.id); break;
        case Event::Kind::node: open_.push_back({}); break;
        case Event::Kind::end:
          if (!open_.empty()) open_.pop_back();
          break;
        case Event::Kind::alloc:
          if (const int32_t call = asked_call(); call >= 0) made_[event.id] = call;
          break;
        default: break;
      }
    }
    return finished();
  }

 private:
  struct Open {
    int32_t call = -1;  // of `calls_`, or −1
    bool kernel = false;
  };

  int32_t asked_call() const {
    for (size_t i = open_.size(); i-- > 0;)
      if (open_[i].call >= 0) return open_[i].call;
    return -1;
  }

  void begin(uint32_t index) {
    const CallRecord& call = trace_.calls[index];
    const Operator* op = registry_.find(trace_.text(call.op));
    Open open{.call = -1, .kernel = !call.composite};
    bool inside = false;  // of a kernel
    for (const Open& outer : open_) inside |= outer.kernel;
    const bool asked = call.phase == Phase::recompute && !call.composite && !inside && op &&
                       !op->record.facts.cuts_history && lies_in(trace_.text(call.module), module_);
    if (asked) {
      open.call = static_cast<int32_t>(calls_.size());
      const auto name = trace_.text(call.op);
      const bool plain = name.starts_with(kNamespace);
      const std::string word(plain ? name.substr(kNamespace.size()) : name);
      calls_.push_back({.op = word, .number = numbers_[word]++, .bytes = 0, .cost = {}});
      records_.push_back(index);
      usable_.push_back(plain && !op->writes && !op->in_place && !op->record.facts.view);
      note_writes(call, *op);
    }
    for (const Open& outer : open_)
      if (outer.call >= 0) add_cost(outer.call, index);
    if (asked) add_cost(open.call, index);
    open_.push_back(open);
  }

  void add_cost(int32_t call, uint32_t index) {
    calls_[size_t(call)].cost += {costs_[index].counted.count, costs_[index].seconds};
  }

  // A result that is written in place cannot be kept.
  void note_writes(const CallRecord& call, const Operator& op) {
    if ((!op.writes && !op.in_place) || call.inputs == 0) return;
    const auto maker = made_.find(trace_.tensors[call.first_tensor].storage);
    if (maker != made_.end()) usable_[size_t(maker->second)] = false;
  }

  std::vector<OperatorCall> finished() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const CallRecord& call = trace_.calls[records_[i]];
      std::set<uint32_t> storages;
      for (uint32_t k = 0; k < call.outputs; ++k) {
        const uint32_t storage = trace_.tensors[call.first_tensor + call.inputs + k].storage;
        if (const auto maker = made_.find(storage); maker != made_.end() && maker->second == int32_t(i))
          storages.insert(storage);
      }
      for (const uint32_t storage : storages) calls_[i].bytes += trace_.bytes(storage).count;
    }
    std::vector<OperatorCall> kept;
    for (size_t i = 0; i < calls_.size(); ++i)
      if (usable_[i] && calls_[i].bytes > 0 && calls_[i].cost > RecomputeCost()) kept.push_back(calls_[i]);
    return kept;
  }

  const Trace& trace_;
  const std::string& module_;
  const Registry& registry_;
  const std::vector<CallCost> costs_;
  std::vector<Open> open_;
  std::vector<OperatorCall> calls_;
  std::vector<uint32_t> records_;  // per call: its record
  std::vector<bool> usable_;       // per call
  std::map<std::string, int32_t> numbers_;
  std::map<uint32_t, int32_t> made_;  // storage → call
};

}  // namespace

std::vector<OperatorCall> recomputed_calls(const Trace& trace, const std::string& module,
                                           const Registry& registry, const Rates& rates) {
  return CallReader(trace, module, registry, rates).read();
}

}  // namespace metaprof
