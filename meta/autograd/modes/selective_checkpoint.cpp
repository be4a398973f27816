#include "meta/autograd/modes/selective_checkpoint.h"

namespace metaprof {
namespace {

// A tensor without history, over the same storage.
Value detached(const Value& value) {
  if (value.is_tensor()) return Value(alias(value.tensor()));
  if (!value.is_tensors()) return value;
  Value::Tensors list = value.tensors();
  for (Tensor& tensor : list)
    if (tensor.defined()) tensor = alias(tensor);
  return Value(std::move(list));
}

template <class Visit>
void for_each_tensor(const ResultList& results, Visit visit) {
  for (const Value& value : results) {
    if (value.is_tensor()) visit(value.tensor());
    if (!value.is_tensors()) continue;
    for (const Tensor& tensor : value.tensors())
      if (tensor.defined()) visit(tensor);
  }
}

SelectiveCache::Kept keep(const Call& call) {
  SelectiveCache::Kept kept;
  for (const Value& result : call.results) kept.results.push_back(detached(result));
  for_each_tensor(kept.results, [&](const Tensor& t) { kept.versions.push_back(t->version()); });
  return kept;
}

void take(SelectiveCache& cache, Call& call) {
  const auto found = cache.results.find(call.op.id);
  if (found == cache.results.end())
    call.error("selective checkpoint: the call was not kept in forward, but the policy says so in backward");
  if (found->second.empty())
    call.error(
        "selective checkpoint: the region is computed a second time, but its results are kept for one");
  SelectiveCache::Kept kept = std::move(found->second.front());
  found->second.pop_front();
  size_t i = 0;
  for_each_tensor(kept.results, [&](const Tensor& tensor) {
    if (tensor->version() != kept.versions[i++])
      call.error("selective checkpoint: a kept result was written in place");
  });
  call.results = std::move(kept.results);
}

// In the place of the layer "record".
void selective_layer(Call& call) {
  SelectiveCache* cache = autograd_state(call.session).selective;
  const Operator& op = call.op;
  const bool asked =
      !call.session.modes.below_autograd && !op.record.meta.composite && !op.record.facts.cuts_history;
  if (!asked) return record_layer(call);
  const CheckpointPolicy policy = cache->policy(call, cache->again);
  if (policy != CheckpointPolicy::must_save && policy != CheckpointPolicy::prefer_save)
    return record_layer(call);
  if (cache->again) return take(*cache, call);
  record_layer(call);
  cache->results[op.id].push_back(keep(call));
}

}  // namespace

SelectiveScope::SelectiveScope(Session& session, SelectiveCache* cache, bool again)
    : session_(session),
      cache_(cache),
      outer_(autograd_state(session).selective),
      layer_(session.layers[static_cast<int>(Layer::record)]),
      again_before_(cache && cache->again) {
  if (!cache) return;
  cache->again = again;
  autograd_state(session).selective = cache;
  session.layers[static_cast<int>(Layer::record)] = selective_layer;
}

SelectiveScope::~SelectiveScope() {
  if (!cache_) return;
  cache_->again = again_before_;
  autograd_state(session_).selective = outer_;
  session_.layers[static_cast<int>(Layer::record)] = layer_;
}

}  // namespace metaprof
