// Sequences one behind the other, and the same padded to one length (aten/src/ATen/native/nested/cuda/
// NestedTensorTransformerFunctions.cu, PyTorch 2.11). Where each sequence begins is data.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

void padded_meta(Call& c) {
  const Tensor& values = c.tensor("values");
  Sizes sizes{c.tensors("offsets")[0].size(0) - 1};
  for (const int64_t length : c.ints("max_lengths")) sizes.push_back(length);
  sizes.push_back(values.size(1));
  c.output(sizes, values.dtype());
}

void jagged_meta(Call& c) {
  const Tensor& dense = c.tensor("dense");
  const int64_t rows = c.given("total_L") ? c.integer("total_L") : size_by_data(c);
  c.output(Sizes{rows, dense.size(-1)}, dense.dtype());
}

// 16 bytes are moved at once where rows of 16-bit numbers begin at multiples of that
// (jagged_dense_dense_elementwise_jagged_output_matches_opt).
bool moves_by_16_bytes(const Tensor& dense) {
  constexpr int64_t kElements = 8;
  return dense.dtype() == DType::f16 && dense.dim() == 3 && dense.size(-1) % kElements == 0 &&
         dense.strides()[1] % kElements == 0;
}

// The kernel adds to values that are made for it and hold nothing; the quick one finds each row's sequence first.
void jagged_cuda(Call& c) {
  const Tensor& dense = c.tensor("dense");
  const Tensor& result = c.result_tensor();
  const Tensor values = c.temporary(result.sizes(), result.dtype());
  c.allocate_all();
  if (!moves_by_16_bytes(dense)) return;
  const Tensor sequences = c.temporary(Sizes{result.size(0)}, DType::i32);
  const Tensor places = c.temporary(Sizes{result.size(0)}, DType::i32);
}

constexpr Op kJagged[] = {
    {.schema = "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float "
               "padding_value=0.0) -> Tensor",
     .summary = "sequences that stand one behind the other, padded to one length",
     .meta = padded_meta,
     .derivatives = {{{"values"},
                      {"offsets"},
                      [](Backward& b) {
                        return call<"_padded_dense_to_jagged_forward">(
                            b.session, b.grad(), Value(Value::Tensors(b.list("offsets"))),
                            b.sizes("values")[0]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[7,3] (i64[3]) (4)"},
     .facts = {.takes = "offsets.length > 0, values.dim == 2"}},
    {.schema =
         "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor",
     .summary = "padded sequences, one behind the other and without what they were padded with",
     .meta = jagged_meta,
     .host_code = {{DeviceType::cuda, jagged_cuda}},
     .derivatives = {{{"dense"},
                      {"offsets"},
                      [](Backward& b) {
                        return call<"_jagged_to_padded_dense_forward">(
                            b.session, b.grad(), Value(Value::Tensors(b.list("offsets"))),
                            Sizes{b.sizes("dense")[1]}, 0.0);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,4,3] (i64[3]) 7"},
     .facts = {.takes = "offsets.length > 0, dense.dim >= 2"}}};

}  // namespace

Tables jagged_operators() {
  static constexpr Records tables[] = {kJagged};
  return tables;
}

}  // namespace metaprof
