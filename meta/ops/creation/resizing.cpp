// Tensors that change their size, and numbers that come back from the device.

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/views.h"
#include "meta/ops/creation/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/no_gradient.h"
#include "meta/ops/views/views.h"

namespace metaprof {
namespace {

// Another block for a storage: the old one is returned after the new one was taken.
void grow(Session& session, Storage& storage, int64_t bytes) {
  const Ref<Storage> bigger =
      session.allocate(storage.device, bytes, session.trace.storages[storage.id].category);
  // The blocks change owners; the old one dies with the temporary.
  std::swap(storage.id, bigger->id);
  std::swap(storage.bytes, bigger->bytes);
}

// native/Resize.cpp: the storage grows if it must, into a new block, and never shrinks.
void resize(Call& c, const Tensor& self, const Sizes& sizes, MemoryFormat format) {
  if (self.requires_grad()) c.error("a tensor that requires grad cannot be resized: " + describe(self));
  const Sizes strides = strides_in(format, sizes);
  if (self.sizes() != sizes || format != MemoryFormat::contiguous)
    change_geometry(self, sizes, strides, self->offset);
  const int64_t needed =
      multiply(self->offset + span_of(self.sizes(), self.strides()), element_size(self.dtype()));
  if (needed > self->storage->bytes) grow(c.session, *self->storage, needed);
  c.result(self);
}

MemoryFormat format_of(const Call& c) {
  return c.given("memory_format") ? static_cast<MemoryFormat>(c.integer("memory_format"))
                                  : MemoryFormat::contiguous;
}

void resize_meta(Call& c) { resize(c, c.tensor("self"), c.ints("size"), format_of(c)); }

void resize_as_meta(Call& c) {
  const Tensor& like = c.tensor("the_template");
  MemoryFormat format = format_of(c);
  if (format == MemoryFormat::preserve) {
    format = MemoryFormat::contiguous;
    if (suggests_channels_last(like.sizes(), like.strides()))
      format = like.dim() == 5 ? MemoryFormat::channels_last_3d : MemoryFormat::channels_last;
  }
  resize(c, c.tensor("self"), like.sizes(), format);
}

// native/TensorShape.cpp (set_), Resize.h (set_storage): self looks into the source's storage, which grows if it must.
void look_into(Call& c, const Ref<Storage>& storage, SizesView sizes, SizesView strides, int64_t offset) {
  const Tensor& self = c.tensor("self");
  if (self.requires_grad() && c.session.modes.grad)
    c.error("a leaf that requires grad cannot be set: " + describe(self));
  if (offset < 0 || sizes.size() != strides.size())
    c.error("the sizes, strides and offset do not belong together");
  self->storage = storage;
  change_geometry(self, sizes, strides, offset);
  const int64_t needed = multiply(offset + span_of(sizes, strides), element_size(self.dtype()));
  if (needed > self->storage->bytes) grow(c.session, *self->storage, needed);
  c.result(self);
}

const Tensor& source_of(Call& c) {
  const Tensor& source = c.tensor("source");
  if (source.is_sparse() || source.dtype() != c.tensor("self").dtype())
    c.error(describe(c.tensor("self")) + " cannot look into the memory of " + describe(source));
  return source;
}

void set_meta(Call& c) {
  const Tensor& source = source_of(c);
  const Sizes sizes(source.sizes()), strides(source.strides());
  look_into(c, source->storage, sizes, strides, source->offset);
}

void set_part_meta(Call& c) {
  const Sizes sizes = c.ints("size");
  const Sizes strides =
      c.ints("stride").empty() ? strides_in(MemoryFormat::contiguous, sizes) : c.ints("stride");
  const Tensor& source = c.tensor("source");  // of any dtype: bytes are looked into
  if (source.is_sparse()) c.error(describe(source) + " has no memory of its own");
  look_into(c, source->storage, sizes, strides, c.integer("storage_offset"));
}

void set_to_nothing_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  look_into(c, c.session.allocate(self.device(), 0), Sizes{0}, Sizes{1}, 0);
}

Tensor summed_to(Call& c, SizesView sizes) {
  const Tensor& self = c.tensor("self");
  if (broadcast(sizes, self.sizes()) != self.sizes())
    c.error(describe(self) + " cannot be summed to " + to_string(sizes));
  return sum_to(c.session, self, sizes);
}

void sum_to_size_body(Call& c) { c.result(summed_to(c, c.ints("size"))); }

void gradient_sum_to_size_body(Call& c) {
  c.result(c.given("size") ? summed_to(c, c.ints("size")) : c.tensor("self"));
}

// Only the data knows the number.
void unknown_number(Call& c) {
  if (c.tensor("self").numel() != 1)
    c.error("a tensor of one element can become a number, got " + describe(c.tensor("self")));
  c.result(Value());
}

constexpr Op number_in(std::string_view schema) {
  return no_gradient(schema, "the number itself, which only the data knows", unknown_number, {"f32[]"},
                     {.reads_data = true, .host_reads = true});
}

constexpr Op kResizing[] = {
    no_gradient("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
                "self with other sizes", resize_meta, {"f32[2] (2 3)"}, {.takes = "size.each >= 0"}),
    no_gradient(
        "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        "self with another tensor's sizes", resize_as_meta, {"f32[2] f32[2,3]"}),
    no_gradient("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
                "self as another look into the source's memory, like the source", set_meta,
                {"f32[2] f32[2,3]"}),
    no_gradient("set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, "
                "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
                "self as another look into the source's memory", set_part_meta,
                {"f32[2] f32[2,3] 1 (2 2) (2 1)"}),
    no_gradient("set_(Tensor(a!) self) -> Tensor(a!)", "self without elements or memory", set_to_nothing_meta,
                {"f32[2]"}),
    composite_of("sum_to_size(Tensor self, SymInt[] size) -> Tensor", "summed to what broadcasts to self",
                 sum_to_size_body, {"f32[2,3] (3)"}),
    composite_of("_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)",
                 "self, or what it is summed to where size is given", gradient_sum_to_size_body,
                 {"f32[2,3] (3)"}),
    number_in("item(Tensor self) -> Scalar"),
    number_in("_local_scalar_dense(Tensor self) -> Scalar"),
    number_in("is_nonzero(Tensor self) -> bool")};

}  // namespace

Tables resizing_operators() {
  static constexpr Records tables[] = {kResizing};
  return tables;
}

}  // namespace metaprof
