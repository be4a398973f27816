// Making tensors and copying them.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/creation/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

Device device_or_session(const Call& c, Name name = "device") {
  return c.given(name) ? c[name].device() : c.session.device;
}

Sizes strides_for_format(const Call& c, const Tensor& like, MemoryFormat otherwise) {
  const auto format =
      c.given("memory_format") ? static_cast<MemoryFormat>(c.integer("memory_format")) : otherwise;
  if (format == MemoryFormat::preserve)
    return like->dense ? like.strides() : dense_strides_like(like.sizes(), like.strides());
  return strides_in(format, like.sizes());
}

// zeros_like, ones_like, empty_like …: the argument's geometry unless told otherwise.
void like_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Device device = c.given("device") ? c["device"].device() : self.device();
  c.output(self.sizes(), strides_for_format(c, self, MemoryFormat::preserve), c.dtype("dtype", self.dtype()),
           device);
}

void sizes_meta(Call& c) {
  const Sizes& sizes = c.ints("size");
  c.output(sizes, contiguous_strides(sizes), c.dtype("dtype", kDefaultDType), device_or_session(c));
}

void new_sizes_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Device device = c.given("device") ? c["device"].device() : self.device();
  c.output(c.ints("size"), contiguous_strides(c.ints("size")), c.dtype("dtype", self.dtype()), device);
}

void full_meta(Call& c) {
  const Value& fill = c["fill_value"];
  DType dtype = kDefaultDType;
  if (fill.kind() == Value::Kind::integer) dtype = DType::i64;
  if (fill.kind() == Value::Kind::boolean) dtype = DType::b8;
  if (fill.kind() == Value::Kind::complex) dtype = DType::c64;
  const Sizes& sizes = c.ints("size");
  c.output(sizes, contiguous_strides(sizes), c.dtype("dtype", dtype), device_or_session(c));
}

// Numbers from start to before end. 64-bit integers are counted with integers, all else with doubles
// (native/cuda/RangeFactories.cu); from 2.15 on only where start, end and step are integers, too (recorded:
// `opinfo/arange/22`).
template <bool as_given>
void arange(Call& c, double start, double end, double step, bool integers) {
  const DType dtype = c.dtype("dtype", integers ? DType::i64 : kDefaultDType);
  if (dtype == DType::i64 && !as_given) {
    start = std::trunc(start);
    end = std::trunc(end);
    step = std::trunc(step);
  }
  if (step == 0 || (end - start) / step < 0) c.error("the step leads away from the end");
  const double steps = std::ceil((end - start) / step);
  if (!(steps <= double(kLargestInteger))) c.error(fmt::format("{} elements are too many", steps));
  const auto count = static_cast<int64_t>(steps);
  c.output(Sizes{count}, contiguous_strides(Sizes{count}), dtype, device_or_session(c));
}

bool is_integer(const Value& value) { return value.kind() == Value::Kind::integer; }

void new_empty_strided_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Device device = c.given("device") ? c["device"].device() : self.device();
  c.output(c.ints("size"), c.ints("stride"), c.dtype("dtype", self.dtype()), device);
}

// A sparse tensor like `self` without its parts.
Tensor sparse_like(Session& session, const Tensor& self, DType dtype, Device device) {
  Tensor copy(new TensorImpl(self.sizes(), self.strides(), dtype, device));
  copy->layout = self->layout;
  copy->storage = session.allocate(device, 0);
  TensorExtra& extra = copy->ensure_extra();
  extra.coalesced = self->extra->coalesced;
  extra.parts.resize(self->extra->parts.size());
  return copy;
}

// native/sparse/SparseTensor.cpp, clone_sparse: copies of the parts, of the values first.
void clone_sparse(Call& c, const Tensor& self) {
  const Tensor copy = sparse_like(c.session, self, self.dtype(), self.device());
  const BelowAutograd below(c.session);
  for (size_t i = self->extra->parts.size(); i-- > 0;)
    copy->extra->parts[i] = call<"clone">(c.session, Tensor(self->extra->parts[i]));
  c.result(copy);
}

// native/TensorConversions.cpp, _to_copy: coordinates and then values; of compressed ones values, then indices.
void copy_sparse_to(Call& c, const Tensor& self, DType dtype, Device device) {
  const Tensor copy = sparse_like(c.session, self, dtype, device);
  const BelowAutograd below(c.session);
  const size_t values = self->extra->parts.size() - 1;
  const auto copied = [&](size_t i) {
    const Tensor part(self->extra->parts[i]);
    copy->extra->parts[i] =
        call<"_to_copy">(c.session, part, i == values ? dtype : part.dtype(), Value(), device);
  };
  if (self->layout != Layout::sparse) copied(values);
  for (size_t i = 0; i < values; ++i) copied(i);
  if (self->layout == Layout::sparse) copied(values);
  c.result(copy);
}

void clone_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.is_sparse()) return clone_sparse(c, self);
  c.output(self.sizes(), strides_for_format(c, self, MemoryFormat::preserve), self.dtype(), self.device());
}

void copy_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor* operands[] = {&self, &c.tensor("src")};
  if (broadcast_all(c, operands) != self.sizes()) c.error("the source does not broadcast to the target");
  c.result(self);
}

Gradients copy_backward(Backward& b) {
  // torch/csrc/autograd/FunctionsManual.cpp, CopyBackwards: zeros for what was overwritten, and the gradient
  // for the source.
  return {b.wants("self") ? zeros_like(b.grad()) : Tensor(),
          b.wants("src") ? to(b.grad(), b.dtype("src")) : Tensor()};
}

void self_meta(Call& c) { c.result(c.tensor("self")); }

void to_copy_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Device device = c.given("device") ? c["device"].device() : self.device();
  const DType dtype = c.dtype("dtype", self.dtype());
  if (self.is_sparse()) return copy_sparse_to(c, self, dtype, device);
  c.output(self.sizes(), strides_for_format(c, self, MemoryFormat::preserve), dtype, device);
}

// FunctionsManual.cpp, _to_copy_backward: of a real tensor only the real part of the gradient counts.
Gradients to_copy_backward(Backward& b) {
  Tensor gradient = b.grad();
  if (is_complex(gradient.dtype()) && !is_complex(b.dtype("self")))
    gradient = call<"real">(b.session, gradient);
  return {Tensor(
      call<"to.dtype_layout">(b.session, gradient, b.dtype("self"), Value(), b.shape("self")->device))};
}

// No format is asked for, or the one that the tensor's strides suggest.
bool has_format(const Call& c, const Tensor& self) {
  if (!c.given("memory_format")) return true;
  const auto format = static_cast<MemoryFormat>(c.integer("memory_format"));
  if (format == MemoryFormat::preserve) return true;
  if (!suggests_channels_last(self.sizes(), self.strides())) return format == MemoryFormat::contiguous;
  return format == (self.dim() == 5 ? MemoryFormat::channels_last_3d : MemoryFormat::channels_last);
}

// to.*: itself if nothing changes, else a copy.
void to_body(Call& c, const Value& dtype, const Value& device) {
  const Tensor& self = c.tensor("self");
  const bool copy = c.boolean("copy");
  const bool same = (dtype.is_none() || dtype.integer() == static_cast<int64_t>(self.dtype())) &&
                    (device.is_none() || device.device().type == self.device().type);
  if (same && !copy && has_format(c, self)) return c.result(self);
  c.result(call<"_to_copy">(c.session, self, dtype, Value(), device, Value(), c["non_blocking"],
                            c["memory_format"]));
}

Gradients no_gradient_for_value(Backward& b) { return {zeros_like(b.grad())}; }

template <bool as_given>
constexpr auto ranges(const FrameworkRange& versions) {
  std::array ops = {
      Op{.schema = "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                   "bool? pin_memory=None) -> Tensor",
         .summary = "0, 1, … below the end",
         .meta = [](Call& c) { arange<as_given>(c, 0, c.real("end"), 1, is_integer(c["end"])); },
         .derivatives = not_differentiable,
         .flops = free_of_flops,
         .examples = {"5", "2.5"}},
      Op{.schema = "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
                   "Device? device=None, bool? pin_memory=None) -> Tensor",
         .summary = "start, start+1, … below the end",
         .meta =
             [](Call& c) {
               arange<as_given>(c, c.real("start"), c.real("end"), 1,
                                is_integer(c["start"]) && is_integer(c["end"]));
             },
         .derivatives = not_differentiable,
         .flops = free_of_flops,
         .examples = {"1 5"}},
      Op{.schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
                   "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
         .summary = "start, start+step, … before the end",
         .meta =
             [](Call& c) {
               arange<as_given>(c, c.real("start"), c.real("end"), c.real("step"),
                                is_integer(c["start"]) && is_integer(c["end"]) && is_integer(c["step"]));
             },
         .derivatives = not_differentiable,
         .flops = free_of_flops,
         .examples = {"1 9 2"}}};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kRanges = ranges<false>({.before = {2, 15}}),
               kRangesSince15 = ranges<true>({.since = {2, 15}});

constexpr Op kFactories[] = {
    {.schema = "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "memory as it comes",
     .meta =
         [](Call& c) {
           const auto format = c.given("memory_format")
                                   ? static_cast<MemoryFormat>(c.integer("memory_format"))
                                   : MemoryFormat::contiguous;
           c.output(c.ints("size"), strides_in(format, c.ints("size")), c.dtype("dtype", kDefaultDType),
                    device_or_session(c));
         },
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(2 3)"}},
    {.schema = "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .summary = "memory as it comes, with these strides",
     .meta =
         [](Call& c) {
           c.output(c.ints("size"), c.ints("stride"), c.dtype("dtype", kDefaultDType), device_or_session(c));
         },
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(2 3) (1 2)"}},
    {.schema = "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .summary = "0",
     .meta = sizes_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(2 3)"}},
    {.schema = "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .summary = "1",
     .meta = sizes_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(2 3)"}},
    {.schema = "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .summary = "one number everywhere",
     .meta = full_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(2 3) 1.5", "(2) 1"}},
    {.schema = "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .summary = "a number as a tensor",
     .meta = [](Call& c) { c.output({}, {}, c.dtype("dtype", kDefaultDType), device_or_session(c)); },
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"1.5"}},
};

constexpr Op kLikes[] = {
    {.schema = "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "memory of the same geometry",
     .meta = like_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,3]"},
     .facts = {.reads_marks = kConjugated | kNegated}},
    {.schema = "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "0 of the same geometry",
     .meta = like_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,3]"}},
    {.schema = "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "1 of the same geometry",
     .meta = like_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,3]"}},
    {.schema = "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "one number of the same geometry",
     .meta = like_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,3] 1"},
     .facts = {.reads_marks = kConjugated | kNegated}},
    {.schema = "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
               "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .summary = "memory of self's dtype",
     .meta = new_empty_strided_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2] (2 3) (3 1)"}},
    {.schema = "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .summary = "0 of self's dtype",
     .meta = new_sizes_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2] (2 3)"}},
    {.schema = "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .summary = "1 of self's dtype",
     .meta = new_sizes_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2] (2 3)"}}};

// ATen/native/cuda/Copy.cu, copy_requires_temporaries: what comes from the host goes through a contiguous tensor where the
// target has gaps or another order, and where the device converts (which it does when nobody waits).
void copy_cuda(Call& c) {
  const Tensor &self = c.tensor("self"), &src = c.tensor("src");
  if (!self.is_cuda() || src.is_cuda() || self.is_sparse() || src.is_sparse()) return;
  const bool same_dtype = self.dtype() == src.dtype();
  const bool in_order = self.sizes() == src.sizes() && self->dense && self.strides() == src.strides();
  if (same_dtype && in_order) return;
  const bool device_converts = c.boolean("non_blocking") && !same_dtype;
  if (self.is_contiguous() && !device_converts) return;
  auto through = c.temporary(self.sizes(), c.boolean("non_blocking") ? src.dtype() : self.dtype());
}

constexpr Op kCopies[] = {
    {.schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "a copy",
     .meta = clone_meta,
     .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {b.grad()}; }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3]", "f32[2,3]/1,2 0"},
     .facts = {.reads_marks = kConjugated | kNegated}},
    {.schema = "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
     .summary = "self := src",
     .meta = copy_meta,
     .host_code = {{DeviceType::cuda, copy_cuda}},
     .derivatives = {{{"self", "src"}, {}, copy_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] f32[3]"},
     .facts = {.node = "CopyBackwards", .reads_marks = kConjugated | kNegated, .writes_each_once = true}},
    {.schema = "zero_(Tensor(a!) self) -> Tensor(a!)",
     .summary = "self := 0",
     .meta = self_meta,
     .derivatives = {{{"self"}, {}, no_gradient_for_value}},
     .flops = free_of_flops,
     .examples = {"f32[2,3]"},
     .facts = {.node = "ZeroBackward0"}},
    {.schema = "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
     .summary = "self := value",
     .meta = self_meta,
     .derivatives = {{{"self"}, {}, no_gradient_for_value}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] 1"},
     .facts = {.node = "FillBackward2"}}};

constexpr Op kConversions[] = {
    {.schema = "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     .summary = "a copy of another dtype or on another device",
     .meta = to_copy_meta,
     .derivatives = {{{"self"}, {}, to_copy_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] 7"},
     .facts = {.node = "ToCopyBackward0"}},
    {.schema = "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
               "MemoryFormat? memory_format=None) -> Tensor(a)",
     .summary = "itself, or a copy of that dtype",
     .meta = composite([](Call& c) { to_body(c, c["dtype"], Value()); }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2] 7", "f32[2] 6"}},
    {.schema = "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
               "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .summary = "itself, or a copy on that device",
     .meta = composite([](Call& c) { to_body(c, c["dtype"], c["device"]); }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2] cpu 7"}},
    {.schema = "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
               "memory_format=None) -> Tensor(a)",
     .summary = "itself, or a copy of that dtype on that device",
     .meta = composite([](Call& c) { to_body(c, c["dtype"], c["device"]); }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2] 7"}},
    {.schema = "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
               "MemoryFormat? memory_format=None) -> Tensor(a)",
     .summary = "itself, or a copy of the other's dtype on its device",
     .meta = composite([](Call& c) { to_body(c, c.tensor("other").dtype(), c.tensor("other").device()); }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2] f64[3]", "f32[2] f32[3]"}}};

// What exporters write into programs to check them; running the module does none of it.
constexpr Op export_check(std::string_view schema, std::string_view example) {
  return {.schema = schema,
          .summary = "an exporter's check",
          .meta = [](Call&) {},
          .derivatives = not_differentiable,
          .flops = free_of_flops,
          .examples = {example},
          .facts = {.artefact = true}};
}

constexpr Op kExportChecks[] = {
    export_check("_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
                 "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
                 "f32[2]"),
    export_check("_assert_scalar(Scalar self, str assert_msg) -> ()", "1 \"message\""),
    export_check("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", "2"),
    export_check("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", "2")};

}  // namespace

Tables creation_operators() {
  static constexpr Records tables[] = {kFactories, kRanges,      kRangesSince15, kLikes,
                                       kCopies,    kConversions, kExportChecks};
  return tables;
}

}  // namespace metaprof
