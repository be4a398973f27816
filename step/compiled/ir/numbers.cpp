#include "step/compiled/ir/numbers.h"

#include <algorithm>

#include "core/error.h"

namespace metaprof::ir {
namespace {

using Arguments = std::span<const Constant>;
using To = Type::Kind;

int64_t divisor(const Constant& value) {
  if (value.integer() == 0) fail("a division by zero in the arithmetic of a graph");
  return value.integer();
}

// Python's: towards minus infinity.
int64_t floor_division(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

size_t place(int64_t index, size_t size) {
  const int64_t count = static_cast<int64_t>(size), at = index < 0 ? index + count : index;
  if (at < 0 || at >= count) fail("element {} of a list of {}", index, size);
  return static_cast<size_t>(at);
}

Constant element(Arguments a) {
  const int64_t index = a[1].integer();
  if (a[0].is_tensors()) return Constant(a[0].tensors()[place(index, a[0].tensors().size())]);
  return Constant(a[0].integers()[place(index, a[0].integers().size())]);
}

Constant length(Arguments a) {
  return a[0].is_tensors() ? Constant(a[0].tensors().size()) : Constant(a[0].integers().size());
}

// What `sizes` are broadcast to together with others.
Constant broadcast_sizes(Arguments a) { return Constant(broadcast(a[0].integers(), a[1].integers())); }

// (sizes, chunks, dim, the last chunk?): what chunks are like.
Constant sizes_of_chunk(Arguments a) {
  Sizes sizes = a[0].integers();
  int64_t& size = sizes[static_cast<size_t>(wrap_dim(a[2].integer(), static_cast<int64_t>(sizes.size())))];
  const int64_t chunks = a[1].integer(), regular = (size + chunks - 1) / chunks;
  size = a[3].boolean() ? size - regular * (chunks - 1) : regular;
  return Constant(sizes);
}

// The sizes of tensors along a dimension; of those without elements, which may have any number of dimensions, 0.
Constant lengths(Arguments a) {
  Sizes sizes;
  for (const Tensor& tensor : a[0].tensors())
    sizes.push_back(tensor.defined() && tensor.numel() > 0 ? tensor.size(a[1].integer()) : 0);
  return Constant(sizes);
}

template <class Operation>
int64_t of_two(Arguments a, Operation operation) {
  return operation(a[0].integer(), a[1].integer());
}

constexpr NumberOp kOps[] = {
    {"aten::add.int", 2, To::integer, [](Arguments a) { return Constant(of_two(a, std::plus<>())); }},
    {"aten::sub.int", 2, To::integer, [](Arguments a) { return Constant(of_two(a, std::minus<>())); }},
    {"aten::mul.int", 2, To::integer, [](Arguments a) { return Constant(of_two(a, std::multiplies<>())); }},
    {"aten::floordiv.int", 2, To::integer,
     [](Arguments a) { return Constant(floor_division(a[0].integer(), divisor(a[1]))); }},
    {"aten::remainder.int", 2, To::integer,
     [](Arguments a) {
       const int64_t by = divisor(a[1]);
       return Constant(a[0].integer() - floor_division(a[0].integer(), by) * by);
     }},
    {"aten::neg.int", 1, To::integer, [](Arguments a) { return Constant(-a[0].integer()); }},
    {"aten::lt.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() < a[1].integer()); }},
    {"aten::le.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() <= a[1].integer()); }},
    {"aten::gt.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() > a[1].integer()); }},
    {"aten::ge.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() >= a[1].integer()); }},
    {"aten::eq.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() == a[1].integer()); }},
    {"aten::ne.int", 2, To::boolean, [](Arguments a) { return Constant(a[0].integer() != a[1].integer()); }},
    {"aten::__not__", 1, To::boolean, [](Arguments a) { return Constant(!a[0].boolean()); }},
    {"aten::__and__.bool", 2, To::boolean,
     [](Arguments a) { return Constant(a[0].boolean() && a[1].boolean()); }},
    {"aten::__or__.bool", 2, To::boolean,
     [](Arguments a) { return Constant(a[0].boolean() || a[1].boolean()); }},
    {"aten::__is__", 2, To::boolean, [](Arguments a) { return Constant(a[0].is_none() == a[1].is_none()); }},
    {"aten::__isnot__", 2, To::boolean,
     [](Arguments a) { return Constant(a[0].is_none() != a[1].is_none()); }},
    {"aten::size", 1, To::integers, [](Arguments a) { return Constant(a[0].tensor().sizes()); }},
    {"aten::size.int", 2, To::integer,
     [](Arguments a) { return Constant(a[0].tensor().size(a[1].integer())); }},
    {"aten::_size_if_not_equal", 2, To::integers,
     [](Arguments a) { return a[0].integers() == a[1].integers() ? Constant() : a[0]; }, /*optional=*/true},
    {"aten::numel", 1, To::integer, [](Arguments a) { return Constant(a[0].tensor().numel()); }},
    {"prim::dtype", 1, To::integer, [](Arguments a) { return Constant(a[0].tensor().dtype()); }},
    {"prim::BroadcastSizes", 2, To::integers, broadcast_sizes},
    {"prim::ChunkSizes", 4, To::integers, sizes_of_chunk},
    {"prim::lengths", 2, To::integers, lengths},
    {"aten::dim", 1, To::integer, [](Arguments a) { return Constant(a[0].tensor().dim()); }},
    {"aten::is_floating_point", 1, To::boolean,
     [](Arguments a) { return Constant(is_floating(a[0].tensor().dtype())); }},
    {"aten::Float.Scalar", 1, To::real,
     [](Arguments a) {
       return Constant(a[0].kind() == Constant::Kind::integer ? static_cast<double>(a[0].integer())
                                                              : a[0].real());
     }},
    {"aten::len.t", 1, To::integer, length},
    {"aten::__getitem__.t", 2, To::any, element},
};

}  // namespace

const NumberOp* number_op(std::string_view name) {
  const auto* found = std::ranges::find(kOps, name, &NumberOp::name);
  return found == std::end(kOps) ? nullptr : found;
}

}  // namespace metaprof::ir
