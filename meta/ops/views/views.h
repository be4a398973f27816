#pragma once
// What the families of views share: builders for their records, and the geometry of the views that also exist
// as copies and in place.

#include "meta/autograd/engine/backward.h"

namespace metaprof {

/// A view: `geometry` makes its result with Call::view.
constexpr Op view_operator(std::string_view schema, std::string_view summary, void (*geometry)(Call&),
                           Formula backward, const Examples& examples, std::string_view node = {}) {
  return {.schema = schema,
          .summary = summary,
          .meta = geometry,
          .derivatives = {{{"self"}, {}, backward}},
          .flops = free_of_flops,
          .examples = examples,
          .facts = {.node = node, .view = true}};
}

/// A dimension of "self", counted from its first.
int64_t dim_of(const Call& c, Name name = "dim");

// Geometries (views.cpp, view_parts.cpp).
void view_geometry(Call& c);
void transpose_geometry(Call& c);
void t_geometry(Call& c);
void permute_geometry(Call& c);
void expand_geometry(Call& c);
void unsqueeze_geometry(Call& c);
void squeeze_geometry(Call& c);
void squeeze_dim_geometry(Call& c);
void squeeze_dims_geometry(Call& c);
void alias_geometry(Call& c);
void slice_geometry(Call& c);
void select_geometry(Call& c);
void diagonal_geometry(Call& c);
void unfold_geometry(Call& c);
void as_strided_geometry(Call& c);
void split_geometry(Call& c);
void split_with_sizes_geometry(Call& c);
void unbind_geometry(Call& c);

// Derivatives.
Gradients view_backward(Backward& b);
Gradients transpose_backward(Backward& b);
Gradients t_backward(Backward& b);
Gradients permute_backward(Backward& b);
Gradients expand_backward(Backward& b);
Gradients unsqueeze_backward(Backward& b);
Gradients squeeze_backward(Backward& b);
Gradients squeeze_dim_backward(Backward& b);
Gradients squeeze_dims_backward(Backward& b);
Gradients same_gradient(Backward& b);
Gradients slice_gradient(Backward& b);
Gradients select_gradient(Backward& b);
Gradients diagonal_gradient(Backward& b);
Gradients unfold_gradient(Backward& b);
Gradients as_strided_gradient(Backward& b);
Gradients split_gradient(Backward& b);
Gradients unbind_gradient(Backward& b);

}  // namespace metaprof
