#include "meta/autograd/graph/saved_tensor.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {
namespace {

// One event for every saved tensor; who adds them up counts a storage once.
void note_saved(const Storage& storage, uint32_t node) {
  session_of(storage).trace.add({.kind = Event::Kind::save, .id = storage.id, .value = node});
}

void note_released(const Storage& storage, uint32_t node) {
  session_of(storage).trace.add({.kind = Event::Kind::release, .id = storage.id, .value = node});
}

// A sparse result without its history, which would hold the node that holds it: the same parts.
Tensor parts_only(const Tensor& sparse) {
  Tensor other = alias(sparse);
  other->layout = sparse->layout;
  TensorExtra& extra = other->ensure_extra();
  extra.parts = sparse->extra->parts;
  extra.coalesced = sparse->extra->coalesced;
  return other;
}

}  // namespace

SavedTensor::SavedTensor(const Tensor& tensor, Node& node, bool output) : node_(node.record) {
  if (!tensor.defined()) return;
  if (tensor->inference)
    fail("{}: {} was made in inference mode and cannot be saved for backward: clone it outside of that mode",
         node.name(), describe(tensor));
  version_ = tensor->version();
  output_nr_ = tensor->output_nr;
  // Wrapped numbers are never shown to the user's hooks.
  const bool packs = !autograd_state(node.session).saved_tensor_hooks.empty() && !tensor->wrapped_number;
  if (packs) {
    pack(tensor, node, output);
  } else if (output && tensor.is_sparse()) {
    kind_ = Kind::original;
    original_ = parts_only(tensor);
    note_saved(*original_->storage, node_);
  } else if (output && (tensor->grad_fn || !tensor->requires_grad)) {
    kind_ = Kind::output;
    has_history_ = bool(tensor->grad_fn);
    storage_ = tensor->storage;
    geometry_ = Geometry(tensor);
    note_saved(*storage_, node_);
  } else {
    kind_ = Kind::original;
    original_ = tensor;
    note_saved(*original_->storage, node_);
  }
}

// torch/csrc/autograd/saved_variable.cpp, set_hooks_and_pack_data: what is no leaf is shown without history.
void SavedTensor::pack(const Tensor& tensor, Node& node, bool output) {
  kind_ = Kind::packed;
  packed_ = std::make_unique<Packed>();
  packed_->hooks = autograd_state(node.session).saved_tensor_hooks.back();
  packed_->output = output && tensor->grad_fn;
  if (!packed_->output) packed_->edge = gradient_edge(tensor);
  Scoped<bool> no_grad(node.session.modes.grad, false);
  packed_->object = packed_->hooks->pack(tensor->grad_fn ? alias(tensor) : tensor);
  if (tensor->version() != version_)
    fail("{}: a pack hook wrote to its tensor {} in place", node.name(), describe(tensor));
}

SavedTensor& SavedTensor::operator=(SavedTensor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  kind_ = std::exchange(other.kind_, Kind::nothing);
  has_history_ = other.has_history_;
  version_ = other.version_;
  output_nr_ = other.output_nr_;
  node_ = other.node_;
  original_ = std::move(other.original_);
  storage_ = std::move(other.storage_);
  geometry_ = std::move(other.geometry_);
  packed_ = std::move(other.packed_);
  return *this;
}

void SavedTensor::check_version(const Node& node) const {
  const TensorImpl& tensor = kind_ == Kind::output ? *geometry_ : *original_;
  const Storage& storage = kind_ == Kind::output ? *storage_ : *original_->storage;
  const uint32_t version = tensor.own_version ? tensor.own_version->writes : storage.version;
  if (version == version_) return;
  std::string made_by;
  if (kind_ == Kind::output) {
    made_by = fmt::format(", output {} of {},", output_nr_, node.name());
  } else if (original_->grad_fn) {
    made_by = fmt::format(", output {} of {},", output_nr_, grad_fn(original_)->name());
  }
  fail(
      "{}: a tensor that backward needs was modified in place: '{}' {}{}{} is at version {}; "
      "expected version {}",
      node.name(), node.name_of(*this), short_name(tensor.dtype), to_string(SizesView(tensor.sizes)), made_by,
      version, version_);
}

Tensor SavedTensor::unpack_packed(Node& node) const {
  Tensor tensor = packed_->hooks->unpack(*packed_->object);
  if (!tensor.defined()) fail("{}: an unpack hook returned nothing", node.name());
  const Edge edge = packed_->output ? Edge{Ref<Node>(&node), output_nr_} : packed_->edge;
  if (!edge.valid() || tensor->grad_fn) return tensor;
  tensor = alias(tensor);
  set_gradient_edge(tensor, edge);
  return tensor;
}

Tensor SavedTensor::unpack(Node& node) const {
  switch (kind_) {
    case Kind::nothing: return {};
    case Kind::released:
      fail(
          "{}: trying to go backward through the graph a second time, but its saved tensors have been freed: "
          "use retain_graph if you need to",
          node.name());
    case Kind::original: check_version(node); return original_;
    case Kind::output: {
      check_version(node);
      Tensor tensor(
          new TensorImpl(geometry_->sizes, geometry_->strides, geometry_->dtype, geometry_->device));
      tensor->storage = storage_;
      tensor->offset = geometry_->offset;
      tensor->own_version = geometry_->own_version;
      tensor->marks = geometry_->marks;
      if (has_history_) set_gradient_edge(tensor, {Ref<Node>(&node), output_nr_});
      return tensor;
    }
    case Kind::packed: return unpack_packed(node);
  }
  return {};
}

void SavedTensor::release() {
  if (kind_ == Kind::nothing) return;
  reset();
  kind_ = Kind::released;
}

void SavedTensor::reset() {
  if (kind_ == Kind::original && original_.defined()) note_released(*original_->storage, node_);
  if (kind_ == Kind::output && storage_) note_released(*storage_, node_);
  kind_ = Kind::nothing;
  original_ = Tensor();
  storage_.reset();
  geometry_ = Geometry();
  packed_.reset();
}

}  // namespace metaprof
