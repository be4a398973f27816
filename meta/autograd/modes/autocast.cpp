#include "meta/autograd/modes/autocast.h"

#include "core/error.h"
#include "meta/autograd/modes/autocast_on_cpu.h"

namespace metaprof {
namespace {

AutocastState& state_of(Session& session) { return static_cast<AutocastState&>(*session.autocast); }

bool is_eligible(const Tensor& tensor, const Session& session) {
  return tensor.defined() && tensor.device().type == session.device.type && is_floating(tensor.dtype()) &&
         tensor.dtype() != DType::f64;
}

}  // namespace

Tensor cached_cast(Session& session, const Tensor& tensor, DType to) {
  if (!is_eligible(tensor, session) || tensor.dtype() == to) return tensor;
  const bool cacheable = to == session.modes.autocast_dtype && session.modes.autocast_cache &&
                         tensor.dtype() == DType::f32 && tensor.requires_grad() && tensor.is_leaf() &&
                         !tensor->base;
  if (!cacheable) return call<"to.dtype">(session, tensor, to);
  AutocastState& state = state_of(session);
  const auto found = state.index.find(tensor.get());
  if (found != state.index.end()) return state.cached[found->second].cast;
  // The cast is used outside of a no_grad region, too, so it always has a history.
  Scoped<bool> grad(session.modes.grad, true);
  Tensor cast = call<"to.dtype">(session, tensor, to);
  session.categorise(*cast->storage, Category::cached_copy);
  state.index.emplace(tensor.get(), state.cached.size());
  state.cached.push_back({tensor, cast});
  return cast;
}

namespace {

// Arguments are evaluated from right to left, as the framework's compiler does (recorded:
// autocast/bf16/linear).
void cast_all(Call& call, DType to) {
  for (size_t i = call.arguments.size(); i-- > 0;) {
    Value& value = call.arguments[i];
    if (value.is_tensor()) {
      value = Value(cached_cast(call.session, value.tensor(), to));
    } else if (value.is_tensors()) {
      std::vector<Tensor> cast = value.tensors();
      for (Tensor& tensor : cast) tensor = cached_cast(call.session, tensor, to);
      value = Value(std::move(cast));
    }
  }
}

// The widest type among the arguments that take part, at least the lower precision.
DType widest(const Call& call) {
  DType dtype = call.session.modes.autocast_dtype;
  auto look = [&](const Tensor& tensor) {
    if (!is_eligible(tensor, call.session)) return;
    if (tensor.dtype() == DType::f32) dtype = DType::f32;
    if (is_reduced_floating(tensor.dtype()) && tensor.dtype() != call.session.modes.autocast_dtype)
      dtype = DType::f32;
  };
  for (const Value& value : call.arguments) {
    if (value.is_tensor()) look(value.tensor());
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors()) look(tensor);
  }
  return dtype;
}

void set_dtype(Call& call) {
  if (call.arguments.empty() || !call.arguments[0].is_tensor()) return;
  if (!is_eligible(call.arguments[0].tensor(), call.session)) return;
  const int dtype = call.op.schema.find(name_hash("dtype"));
  if (dtype >= 0 && call.arguments[size_t(dtype)].is_none())
    call.arguments[size_t(dtype)] = Value(DType::f32);
}

Autocast rule_on_cpu(Call& call) {
  auto& rules = state_of(call.session).rules_on_cpu;
  if (call.op.id >= rules.size()) rules.resize(call.op.id + 1);
  std::optional<Autocast>& rule = rules[call.op.id];
  if (!rule) rule = autocast_on_cpu(call.op);
  return *rule;
}

}  // namespace

void cast_arguments(Call& call, std::initializer_list<Name> names, DType to) {
  for (Name name : names) {
    Value& value = call.arguments[call.index_of(name)];
    value = Value(cached_cast(call.session, value.tensor(), to));
  }
}

void autocast_layer(Call& call) {
  Session& session = call.session;
  if (!session.modes.autocast) return call.next();
  const bool on_cpu = session.device.is_cpu();
  const Facts& facts = call.op.record.facts;
  if (facts.cast_by && !on_cpu) {
    Scoped<bool> inside(session.modes.autocast, false);
    return facts.cast_by(call);
  }
  const Autocast rule = on_cpu ? rule_on_cpu(call) : facts.autocast;
  // In-place variants are in none of the framework's lists.
  if (rule == Autocast::none || call.op.in_place) return call.next();
  Scoped<bool> inside(session.modes.autocast, false);
  switch (rule) {
    case Autocast::none: break;
    case Autocast::lower_precision: cast_all(call, session.modes.autocast_dtype); break;
    case Autocast::fp32: cast_all(call, DType::f32); break;
    case Autocast::fp32_set_dtype: set_dtype(call); break;
    case Autocast::promote: cast_all(call, widest(call)); break;
    case Autocast::banned: call.error("is not safe under autocast: use its variant with logits");
  }
  call.next();
}

AutocastRegion::AutocastRegion(Session& session, bool enabled, DType dtype, bool cache)
    : session_(session), before_(session.modes) {
  session.modes.autocast = enabled;
  session.modes.autocast_dtype = dtype;
  session.modes.autocast_cache = cache;
  ++state_of(session).nesting;
}

AutocastRegion::~AutocastRegion() {
  session_.modes.autocast = before_.autocast;
  session_.modes.autocast_dtype = before_.autocast_dtype;
  session_.modes.autocast_cache = before_.autocast_cache;
  AutocastState& state = state_of(session_);
  if (--state.nesting > 0) return;
  state.index.clear();
  state.cached.clear();
}

}  // namespace metaprof
