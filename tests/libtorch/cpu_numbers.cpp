#include "tests/libtorch/cpu_numbers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <cstring>

#include "tests/libtorch/libtorch_call.h"

namespace metaprof {
namespace {

at::ScalarType scalar_type(DType dtype) {
  if (dtype > DType::bf16) throw NoNumbers("libtorch has no elements of " + std::string(long_name(dtype)));
  return static_cast<at::ScalarType>(dtype);
}

c10::IntArrayRef as_array(const Sizes& sizes) { return {sizes.data(), sizes.size()}; }
Sizes as_sizes(c10::IntArrayRef array) { return Sizes(SizesView(array.data(), array.size())); }

bool same_storage(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
}

// Strides matter only where there is more than one place to go to.
bool same_strides(const Tensor& ours, const at::Tensor& theirs) {
  if (ours.numel() == 0) return true;
  for (size_t d = 0; d < ours.sizes().size(); ++d)
    if (ours.sizes()[d] > 1 && ours.strides()[d] != theirs.strides()[d]) return false;
  return true;
}

void visit_tensors(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) visit(tensor);
}

}  // namespace

CpuNumbers::CpuNumbers(Session& session)
    : session_(session), before_(session.backends), next_event_(session.trace.events.size()) {
  session.backends.fill(this);
}

CpuNumbers::~CpuNumbers() { session_.backends = before_; }

// `bytes`: how far tensors look into it. A tensor of zeros may have no memory of its own.
c10::Storage& CpuNumbers::buffer_of(const Storage& storage, int64_t bytes) {
  if (bytes > storage.bytes && storage.bytes > 0)
    fail("a tensor looks {} bytes into a block of {}", bytes, storage.bytes);
  auto [found, created] = buffers_.try_emplace(storage.id);
  if (created) {
    const auto size = size_t(std::max(storage.bytes, bytes));
    found->second = c10::Storage(c10::Storage::use_byte_size_t(), size, c10::GetAllocator(c10::kCPU),
                                 /*resizable=*/true);
    if (size > 0) std::memset(found->second.data(), 0xff, size);
  }
  return found->second;
}

at::Tensor CpuNumbers::of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  if (tensor.is_sparse()) throw NoNumbers("there are no numbers for sparse tensors: " + describe(tensor));
  const int64_t span = tensor.numel() == 0 ? 0 : tensor->offset + span_of(tensor.sizes(), tensor.strides());
  const c10::Storage& buffer = buffer_of(*tensor->storage, span * element_size(tensor.dtype()));
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(buffer), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(scalar_type(tensor.dtype())));
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(as_array(tensor.sizes()), as_array(tensor.strides()), tensor->offset);
  if (tensor->wrapped_number) impl->set_wrapped_number(true);
  if (tensor->marks & kConjugated) made._set_conj(true);
  if (tensor->marks & kNegated) made._set_neg(true);
  return made;
}

// A freed block's numbers go, too.
void CpuNumbers::follow_trace() {
  const PlainVector<Event>& events = session_.trace.events;
  for (; next_event_ < events.size(); ++next_event_)
    if (events[next_event_].kind == Event::Kind::free) buffers_.erase(events[next_event_].id);
}

int64_t CpuNumbers::live_bytes() {
  follow_trace();
  int64_t bytes = 0;
  for (const auto& [id, buffer] : buffers_) bytes += int64_t(buffer.nbytes());
  return bytes;
}

void CpuNumbers::wrapped(const Tensor& tensor, const Value& number) {
  at::Tensor data = of(tensor);
  switch (tensor.dtype()) {
    case DType::f64: *data.data_ptr<double>() = number.real(); break;
    case DType::b8: *data.data_ptr<bool>() = number.boolean(); break;
    case DType::c128: *data.data_ptr<c10::complex<double>>() = {number.reals()[0], number.reals()[1]}; break;
    default: *data.data_ptr<int64_t>() = number.integer();
  }
}

void CpuNumbers::seed(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

std::vector<c10::IValue> CpuNumbers::as_arguments(const Operator& op, std::span<const Value> arguments) {
  std::vector<c10::IValue> converted;
  for (size_t i = 0; i < arguments.size(); ++i)
    converted.push_back(
        to_ivalue(op.schema.arguments[i], arguments[i], [this](const Tensor& tensor) { return of(tensor); }));
  return converted;
}

std::vector<c10::IValue> CpuNumbers::libtorch_results(const Operator& op, std::span<const Value> arguments) {
  return call_libtorch(op, as_arguments(op, arguments));
}

void CpuNumbers::run(Call& call) {
  if (depth_ > 0) return run_record(call);
  follow_trace();
  // Before our kernel: some operators change the geometry of an argument.
  const std::vector<c10::IValue> arguments = as_arguments(call.op, call.arguments);
  std::vector<uint32_t> blocks;
  for (const Value& value : call.arguments)
    blocks.push_back(value.is_tensor() && value.tensor()->storage ? value.tensor()->storage->id : 0);
  {
    Scoped<int> inside(depth_, depth_ + 1);
    run_record(call);
  }
  // An argument that grew has another block now, and its numbers move there.
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!call.arguments[i].is_tensor()) continue;
    const uint32_t block = call.arguments[i].tensor()->storage->id;
    if (block == blocks[i]) continue;
    buffers_[block] = buffers_[blocks[i]];
  }
  take_results(call, arguments, call_libtorch(call.op, arguments));
}

void CpuNumbers::take_results(Call& call, const std::vector<c10::IValue>& before,
                              std::vector<c10::IValue> results) {
  if (results.size() != call.results.size()) {
    differences_.push_back(
        fmt::format("{}: {} results, libtorch has {}", call.op.name, call.results.size(), results.size()));
  }
  for (size_t i = 0; i < std::min(results.size(), call.results.size()); ++i) {
    // Our result looks into an argument if and only if libtorch's does.
    visit_tensors(results[i], [&](const at::Tensor& theirs) {
      if (!call.results[i].is_tensor() || call.op.record.facts.reads_data) return;
      const at::Tensor ours = of(call.results[i].tensor());
      for (size_t a = 0; a < before.size(); ++a)
        visit_tensors(before[a], [&](const at::Tensor& argument) {
          if (same_storage(argument, theirs) != same_storage(argument, ours))
            differences_.push_back(fmt::format(
                "{}, result {}: {} argument '{}', in libtorch it {}", call.op.name, i,
                same_storage(argument, ours) ? "looks into" : "is apart from",
                call.op.schema.arguments[a].name, same_storage(argument, theirs) ? "does" : "does not"));
        });
    });
    call.results[i] = taken(call, i, call.results[i], results[i]);
  }
}

Value CpuNumbers::taken(Call& call, size_t index, const Value& ours, const c10::IValue& theirs) {
  if (theirs.isScalar()) {  // only the data knew it
    if (theirs.isInt()) return Value(theirs.toInt());
    if (theirs.isBool()) return Value(theirs.toBool());
    if (theirs.isDouble()) return Value(theirs.toDouble());
    return Value::complex(theirs.toComplexDouble().real(), theirs.toComplexDouble().imag());
  }
  if (theirs.isTensorList()) {
    const std::vector<at::Tensor> list = theirs.toTensorVector();
    if (list.size() != ours.tensors().size())
      throw NoNumbers(
          fmt::format("{}: a list of {}, libtorch has {}", call.op.name, ours.tensors().size(), list.size()));
    for (size_t k = 0; k < list.size(); ++k) take(call, index, ours.tensors()[k], list[k]);
    return ours;
  }
  const at::Tensor& tensor = theirs.toTensor();
  if (call.op.record.facts.reads_data && tensor.defined() &&
      as_sizes(tensor.sizes()) != ours.tensor().sizes()) {
    const Tensor sized = session_.empty_strided(as_sizes(tensor.sizes()), as_sizes(tensor.strides()),
                                                ours.tensor().dtype(), ours.tensor().device());
    take(call, index, sized, tensor);
    return Value(sized);
  }
  take(call, index, ours.tensor(), tensor);
  return ours;
}

void CpuNumbers::take(Call& call, size_t index, const Tensor& ours, const at::Tensor& theirs) {
  auto differ = [&](std::string_view what, const std::string& mine, const std::string& its) {
    differences_.push_back(
        fmt::format("{}, result {}: {} {}, libtorch has {}", call.op.name, index, what, mine, its));
  };
  if (ours.defined() != theirs.defined()) {
    // An empty tensor may stand for one that is not there.
    if ((ours.defined() ? ours.numel() : theirs.numel()) > 0)
      differ("defined", ours.defined() ? "yes" : "no", theirs.defined() ? "yes" : "no");
    return;
  }
  if (!ours.defined()) return;
  const Sizes sizes = as_sizes(theirs.sizes()), strides = as_sizes(theirs.strides());
  if (ours.sizes() != sizes) {
    differ("sizes", to_string(SizesView(ours.sizes())), to_string(SizesView(sizes)));
    throw NoNumbers(differences_.back());
  }
  if (scalar_type(ours.dtype()) != theirs.scalar_type())
    differ("dtype", std::string(long_name(ours.dtype())), c10::toString(theirs.scalar_type()));
  if (!same_strides(ours, theirs))
    differ("strides", to_string(SizesView(ours.strides())), to_string(SizesView(strides)));
  at::Tensor memory = of(ours);
  const bool in_place = same_storage(memory, theirs);
  if (in_place && ours->offset != theirs.storage_offset())
    differ("offset", std::to_string(ours->offset), std::to_string(theirs.storage_offset()));
  if (in_place) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  memory.copy_(theirs);
}

}  // namespace metaprof
