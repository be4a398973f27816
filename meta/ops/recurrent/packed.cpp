// Sequences of several lengths, packed and padded (aten/src/ATen/native/PackedSequence.cpp, PyTorch 2.11).

#include "meta/ops/recurrent/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/rounding.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/recurrent/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

void check_list(const Call& c, const Tensor& list) {
  if (list.dim() != 1 || list.dtype() != DType::i64)
    c.error(fmt::format("expects a list of i64 on the host, got {}", describe(list)));
}

// Lists on the host name each sequence and each step.
void check_counts(const Call& c, int64_t steps, int64_t batch) {
  constexpr int64_t kMost = 1 << 24;
  if (steps > kMost || batch > kMost)
    c.error(fmt::format("packs at most {} sequences of at most {} steps, got {} of {}", kMost, kMost, batch,
                        steps));
}

// Longest first. Where the program does not say them: all as long as the padded input.
Sizes lengths_of(const Call& c, const Tensor& lengths, int64_t steps, int64_t batch) {
  check_list(c, lengths);
  if (lengths.size(0) != batch)
    c.error(fmt::format("expects a length for each of {} sequences, got {}", batch, lengths.size(0)));
  check_counts(c, steps, batch);
  const Sizes* told = integers_in(lengths);
  if (!told) note_assumed(c);
  Sizes all = told ? *told : Sizes(size_t(batch), steps);
  if (!std::ranges::is_sorted(all, std::greater<>()))
    c.error("expects lengths from the longest to the shortest (enforce_sorted=False sorts them)");
  if (all.back() < 1) c.error("expects no sequence without a step");
  if (all.front() > steps)
    c.error(fmt::format("a sequence of {} steps does not fit an input of {}", all.front(), steps));
  return all;
}

Tensor list_on_host(Session& session, Sizes integers) {
  Tensor list = session.empty(Sizes{int64_t(integers.size())}, DType::i64, Device{DeviceType::cpu});
  tell_integers(list, std::move(integers));
  return list;
}

// As often as a sequence ends, what the rest has in common is one block: a copy, unless it lies together.
void pack_meta(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor& given = c.tensor("input");
  if (given.dim() < 2 || given.numel() == 0)
    c.error(fmt::format("expects padded sequences with elements, got {}", describe(given)));
  const Tensor input = c.boolean("batch_first") ? transpose(given, 0, 1) : given;
  const int64_t batch = input.size(1);
  const Sizes lengths = lengths_of(c, c.tensor("lengths"), input.size(0), batch);
  Sizes batch_sizes(size_t(lengths[0]), 0);
  for (const int64_t length : lengths)
    for (int64_t step = 0; step < length; ++step) ++batch_sizes[size_t(step)];
  const Tensor list = list_on_host(c.session, batch_sizes);
  Value::Tensors blocks;
  for (int64_t begin = 0; begin < lengths[0];) {
    const int64_t size = batch_sizes[size_t(begin)], end = lengths[size_t(size) - 1];
    Sizes rows{(end - begin) * size};
    rows.append(input.sizes().begin() + 2, input.sizes().end());
    blocks.push_back(view(contiguous(slice(slice(input, 0, begin, end), 1, 0, size)), rows));
    begin = end;
  }
  c.result(cat(std::move(blocks), 0));
  c.result(list);
}

void pack_backward_body(Call& c) {
  const Tensor& grad = c.tensor("grad");
  Sizes sizes = c.ints("input_size");
  if (sizes.size() < 2) c.error("expects the sizes of padded sequences");
  const bool batch_first = c.boolean("batch_first");
  if (batch_first) std::swap(sizes[0], sizes[1]);
  const Sizes batch_sizes = batch_sizes_of(c, c.tensor("batch_sizes"), grad.size(0), sizes[1]);
  const Tensor gradient = call<"zeros">(c.session, sizes, grad.dtype(), Value(), grad.device());
  int64_t row = 0;
  for (size_t step = 0; step < batch_sizes.size(); ++step) {
    const Tensor from = slice(grad, 0, row, row + batch_sizes[step]);
    copy_(slice(select(gradient, 0, int64_t(step)), 0, 0, batch_sizes[step]), from);
    row += batch_sizes[step];
  }
  c.result(batch_first ? transpose(gradient, 0, 1) : gradient);
}

// Steps of equally many sequences are copied together.
void pad_body(Call& c) {
  const Tensor &data = c.tensor("data"), &list = c.tensor("batch_sizes");
  check_list(c, list);
  const int64_t steps = std::max<int64_t>(list.size(0), 1), total = c.integer("total_length");
  const Sizes batch_sizes = batch_sizes_of(c, list, data.size(0), divide_up(data.size(0), steps));
  if (total > 0 && total < int64_t(batch_sizes.size()))
    c.error(fmt::format("a total length of {} is less than the longest sequence's {}", total,
                        batch_sizes.size()));
  Sizes sizes{total > 0 ? total : int64_t(batch_sizes.size()), batch_sizes[0]};
  sizes.append(data.sizes().begin() + 1, data.sizes().end());
  const Tensor padded =
      call<"full">(c.session, sizes, c["padding_value"], data.dtype(), Value(), data.device());
  Sizes lengths(size_t(batch_sizes[0]), 0);
  int64_t row = 0;
  for (size_t begin = 0; begin < batch_sizes.size();) {
    const int64_t size = batch_sizes[begin];
    size_t end = begin;
    while (end < batch_sizes.size() && batch_sizes[end] == size) ++end;
    const int64_t count = int64_t(end - begin);
    const Tensor rows = slice(data, 0, row, row + count * size);
    const Tensor place = slice(slice(padded, 0, int64_t(begin), int64_t(end)), 1, 0, size);
    copy_(place, view(rows, place.sizes()));
    for (int64_t i = 0; i < size; ++i) lengths[size_t(i)] = int64_t(end);
    row += count * size;
    begin = end;
  }
  c.result(c.boolean("batch_first") ? transpose(padded, 0, 1) : padded);
  c.result(list_on_host(c.session, std::move(lengths)));
}

constexpr Op kPackedSequences[] = {
    {.schema = "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
     .summary = "the steps that padded sequences have, and how many have each",
     .meta = pack_meta,
     .derivatives = {{{"input"},
                      {"result1"},
                      [](Backward& b) {
                        return call<"_pack_padded_sequence_backward">(b.session, b.grad(0), b.sizes("input"),
                                                                      b("result1"), b["batch_first"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[5,2,3] i64[2]@h1 False", "f32[2,5,3] i64[2]@h1 True"},
     .facts = {.reads_data = true, .no_gradient_for = {"result1"}}},
    composite_of("_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool "
                 "batch_first) -> Tensor",
                 "gradient of padded sequences", pack_backward_body, {"f32[7,3] (5 2 3) i64[5]@h1 False"}),
    composite_of("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar "
                 "padding_value, int total_length) -> (Tensor, Tensor)",
                 "packed sequences, padded, and their lengths", pad_body,
                 {"f32[7,3] i64[5]@h1 False 0.0 5", "f32[7,3] i64[5]@h1 True 0.0 6"}, {.reads_data = true})};

}  // namespace

Sizes batch_sizes_of(const Call& c, const Tensor& batch_sizes, int64_t rows, int64_t batch) {
  check_list(c, batch_sizes);
  const int64_t steps = batch_sizes.size(0);
  check_counts(c, steps, batch);
  Sizes all;
  if (const Sizes* told = integers_in(batch_sizes)) {
    all = *told;
  } else {
    note_assumed(c);
    for (int64_t left = rows, step = steps; step-- > 0; left -= all.back())
      all.push_back(std::min(batch, left - step));
  }
  if (all.empty() || all.back() < 1 || !std::ranges::is_sorted(all, std::greater<>()) ||
      std::accumulate(all.begin(), all.end(), int64_t{0}) != rows)
    c.error(
        fmt::format("{} rows are not those of {} steps, of which none has more sequences than the one before",
                    rows, steps));
  return all;
}

Tables packed_sequence_operators() {
  static constexpr Records tables[] = {kPackedSequences};
  return tables;
}

}  // namespace metaprof
