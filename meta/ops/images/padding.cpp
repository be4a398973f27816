// Padding: with a number, by reflection, by repeating the border, around the corner.

#include <fmt/format.h>

#include "meta/ops/images/family.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// `pad` lists (before, after) from the last dimension on.
struct Border {
  int64_t before, after;
};
Border border_of(const Sizes& pad, size_t dim, size_t dims) {
  const size_t pair = dims - 1 - dim;
  if (2 * pair + 1 >= pad.size()) return {0, 0};
  return {pad[2 * pair], pad[2 * pair + 1]};
}

Sizes padded_sizes(const Call& c, const Tensor& self, const Sizes& pad) {
  if (pad.size() % 2 != 0 || pad.size() / 2 > size_t(self.dim()))
    c.error(fmt::format("expects at most {} pairs, got {}", self.dim(), to_string(SizesView(pad))));
  Sizes sizes = self.sizes();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Border border = border_of(pad, d, sizes.size());
    sizes[d] += border.before + border.after;
    if (sizes[d] < 0)
      c.error(fmt::format("{} cannot be cut by {}", describe(self), to_string(SizesView(pad))));
  }
  return sizes;
}

// --- a number

bool only_cuts(const Sizes& pad) {
  return std::all_of(pad.begin(), pad.end(), [](int64_t size) { return size <= 0; });
}

// ATen/native/PadNd.cpp, constant_pad_nd: what is only cut is a copy of a part, which keeps the order of
// dimensions.
void constant_pad_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& pad = c.ints("pad");
  const Sizes sizes = padded_sizes(c, self, pad);
  if (only_cuts(pad)) {
    c.output_like(alias(self, sizes, self.strides(), self->offset));
    return;
  }
  c.output(sizes, strides_in(suggested_format(self), sizes), self.dtype());
}

Gradients constant_pad_backward(Backward& b) {
  Sizes pad = b.ints("pad");
  for (int64_t& size : pad) size = -size;
  return {call<"constant_pad_nd">(b.session, b.grad(), pad, 0)};
}

// --- reflection and replication

struct PadOperator {
  std::string_view forward, backward;
  std::string_view example, backward_example;
  bool copies_gradient = false;  ///< to row-major memory
};

constexpr PadOperator kReflection[] = {
    {"reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     "reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
     "f32[2,5] (1 2)", "f32[2,8] f32[2,5] (1 2)", true},
    {"reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     "reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
     "f32[2,5,5] (1 2 1 1)", "f32[2,7,8] f32[2,5,5] (1 2 1 1)", true},
    {"reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     "reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
     "f32[2,3,3,3] (1 1 1 1 1 1)", "f32[2,5,5,5] f32[2,3,3,3] (1 1 1 1 1 1)"}};
constexpr PadOperator kReplication[] = {
    {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     "replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
     "f32[2,5] (1 2)", "f32[2,8] f32[2,5] (1 2)"},
    {"replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     "replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
     "f32[2,5,5] (1 2 1 1)", "f32[2,7,8] f32[2,5,5] (1 2 1 1)"},
    {"replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     "replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
     "f32[2,3,3,3] (1 1 1 1 1 1)", "f32[2,5,5,5] f32[2,3,3,3] (1 1 1 1 1 1)"}};

void pad_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(padded_sizes(c, self, c.ints("padding")), self.dtype());
}

void pad_backward_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

// Kernels of reflection read contiguous memory, but the gradient in three dimensions with strides
// (ATen/native/cuda/ReflectionPad.cu).
void from_contiguous(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() == 0) return;
  const Tensor copy = c.contiguous(c.arguments[0].tensor());
}

template <FixedString name>
Gradients pad_gradient(Backward& b) {
  return {call<name>(b.session, b.grad(), b("self"), b["padding"])};
}

constexpr HostCodes from_contiguous_if(bool copies) {
  return copies ? HostCodes{{DeviceType::cuda, from_contiguous}} : HostCodes{};
}

template <FixedString name>
Gradients pad_again(Backward& b) {
  return {call<name>(b.session, b.grad(), b["padding"])};
}

template <FixedString forward, FixedString backward>
constexpr std::array<Op, 2> padding(const PadOperator& pad, bool reflects) {
  return {{{.schema = pad.forward,
            .summary = reflects ? "self continued by reflection" : "self continued by its border",
            .meta = pad_meta,
            .host_code = from_contiguous_if(reflects),
            .derivatives = {{{"self"}, {"self"}, pad_gradient<backward>}},
            .flops = free_of_flops,
            .examples = {pad.example}},
           {.schema = pad.backward,
            .summary = "gradients added up where they came from",
            .meta = pad_backward_meta,
            .host_code = from_contiguous_if(pad.copies_gradient),
            .derivatives = {{{"grad_output"}, {}, pad_again<forward>}},
            .flops = input_flops,
            .examples = {pad.backward_example}}}};
}

// --- circular: a body of copies between slices (ATen/native/PadNd.cpp, _pad_circular)

void pad_circular_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& pad = c.ints("pad");
  const auto dims = self.dim() - 2;
  if (int64_t(pad.size()) != 2 * dims)
    c.error(fmt::format("expects {} pairs for {}, got {}", dims, describe(self), to_string(SizesView(pad))));
  const Sizes sizes = padded_sizes(c, self, pad);
  const Tensor out = call<"new_empty">(c.session, self, sizes, self.dtype(), Value(), self.device());
  Tensor inside = out, source = self;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t dim = dims - i + 1, before = pad[size_t(2 * i)], after = pad[size_t(2 * i) + 1];
    const int64_t size = sizes[size_t(dim)], source_size = self.size(dim);
    inside = slice(inside, dim, std::max<int64_t>(before, 0), size - std::max<int64_t>(after, 0));
    source = slice(source, dim, std::max<int64_t>(-before, 0), source_size - std::max<int64_t>(-after, 0));
  }
  copy_(inside, source);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t dim = dims - i + 1, before = pad[size_t(2 * i)], after = pad[size_t(2 * i) + 1];
    const int64_t size = sizes[size_t(dim)], kept_after = std::max<int64_t>(after, 0);
    if (before > 0) {
      inside = slice(out, dim, 0, before);
      source = slice(out, dim, size - before - kept_after, size - kept_after);
      copy_(inside, source);
    }
    if (after > 0) {
      const int64_t kept_before = std::max<int64_t>(before, 0);
      inside = slice(out, dim, size - after, size);
      source = slice(out, dim, kept_before, kept_before + after);
      copy_(inside, source);
    }
  }
  c.result(out);
}

// --- pad

void pad_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Sizes& pad = c.ints("pad");
  const std::string& mode = c["mode"].string();
  Session& s = c.session;
  if (mode == "constant")
    return c.result(call<"constant_pad_nd">(s, self, pad, c.given("value") ? c["value"] : Value(0.0)));
  const auto dims = int64_t(pad.size() / 2);
  if (dims < 1 || dims > 3 || self.dim() < dims + 1 || self.dim() > dims + 2)
    c.error(fmt::format("mode {} kPads the last 1 to 3 dimensions; got {} for {}", mode,
                        to_string(SizesView(pad)), describe(self)));
  if (mode == "circular") return c.result(call<"_pad_circular">(s, self, pad));
  if (mode == "reflect") {
    if (dims == 1) return c.result(call<"reflection_pad1d">(s, self, pad));
    if (dims == 2) return c.result(call<"reflection_pad2d">(s, self, pad));
    return c.result(call<"reflection_pad3d">(s, self, pad));
  }
  if (mode != "replicate") c.error(fmt::format("there is no mode {}", mode));
  if (dims == 1) return c.result(call<"replication_pad1d">(s, self, pad));
  if (dims == 2) return c.result(call<"replication_pad2d">(s, self, pad));
  c.result(call<"replication_pad3d">(s, self, pad));
}

// aten/src/ATen/native/PackedSequence.cpp: each sequence is copied to its place in a full tensor.
void pad_sequence_body(Call& c) {
  Session& s = c.session;
  const Value::Tensors& sequences = c.tensors("sequences");
  const bool batch_first = c.boolean("batch_first"), left = c["padding_side"].string() == "left";
  const auto count = int64_t(sequences.size());
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) longest = std::max(longest, sequence.size(0));
  const Tensor& first = sequences[0];
  Sizes sizes = batch_first ? Sizes{count, longest} : Sizes{longest, count};
  sizes.append(first.sizes().begin() + 1, first.sizes().end());
  const Tensor out = call<"full">(s, sizes, c["padding_value"], first.dtype(), Value(), first.device());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& sequence = sequences[size_t(i)];
    const int64_t length = sequence.size(0), start = left ? longest - length : 0;
    const Tensor whole = batch_first ? select(out, 0, i) : out;
    const Tensor part = call<"narrow">(s, whole, 0, start, length);
    copy_(batch_first ? part : select(part, 1, i), sequence);
  }
  c.result(out);
}

constexpr Op kPadding[] = {
    composite_of("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str "
                 "padding_side=\"right\") -> Tensor",
                 "sequences side by side, the shorter ones padded", pad_sequence_body,
                 {"(f32[2,3] f32[4,3]) True", "(f32[2] f32[4])"},
                 {.takes = "sequences.length > 0, sequences.dim >= 1"}),
    composite_of("pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
                 "self padded", pad_body, {"f32[2,3] (1 1)", "f32[2,3] (1 1) \"reflect\""}),
    {.schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
     .summary = "self with a number around it",
     .meta = constant_pad_meta,
     .derivatives = {{{"self"}, {}, constant_pad_backward}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] (1 2)", "f32[2,3] (-1 0)"}},
    composite_of("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", "self continued by itself",
                 pad_circular_body, {"f32[2,3,4] (1 1)"})};

constexpr auto kPads =
    joined(padding<"reflection_pad1d", "reflection_pad1d_backward">(kReflection[0], true),
           padding<"reflection_pad2d", "reflection_pad2d_backward">(kReflection[1], true),
           padding<"reflection_pad3d", "reflection_pad3d_backward">(kReflection[2], true),
           padding<"replication_pad1d", "replication_pad1d_backward">(kReplication[0], false),
           padding<"replication_pad2d", "replication_pad2d_backward">(kReplication[1], false),
           padding<"replication_pad3d", "replication_pad3d_backward">(kReplication[2], false));

}  // namespace

Tables padding_operators() {
  static constexpr Records tables[] = {kPadding, kPads};
  return tables;
}

}  // namespace metaprof
