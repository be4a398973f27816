#pragma once
// All operators. Each family is a file of records; `all.cpp` is the only list of them.

#include "meta/op/registry.h"
#include "meta/tensor/session.h"

namespace metaprof {

/// The registry of all operators; made once, never changed.
const Registry& standard_registry();

/// A session that knows all operators and has its layers.
std::unique_ptr<Session> make_session(const DeviceProfile& profile);

// The families.
Tables linear_solver_operators();
Tables linear_system_operators();
Tables decomposition_operators();
Tables factored_system_operators();
Tables sequence_loss_operators();
Tables matrix_norm_operators();
Tables tensor_equation_operators();
Tables singular_value_operators();
Tables alias_operators();
Tables whole_tensor_operators();
Tables view_operators();
Tables view_part_operators();
Tables view_composite_operators();
Tables view_copy_operators();
Tables creation_operators();
Tables resizing_operators();
Tables sparse_operators();
Tables unary_operators();
Tables binary_operators();
Tables choice_operators();
Tables comparison_operators();
Tables activation_operators();
Tables gated_activation_operators();
Tables power_operators();
Tables special_operators();
Tables angle_operators();
Tables padding_operators();
Tables repeating_operators();
Tables factory_operators();
Tables assignment_operators();
Tables gradient_operators();
Tables sum_operators();
Tables extremum_operators();
Tables selection_operators();
Tables statistics_operators();
Tables covariance_operators();
Tables quantile_operators();
Tables norm_operators();
Tables scan_operators();
Tables joining_operators();
Tables matmul_operators();
Tables vector_product_operators();
Tables contraction_operators();
Tables einsum_operators();
Tables matrix_chain_operators();
Tables vector_geometry_operators();
Tables recurrent_operators();
Tables cudnn_recurrent_operators();
Tables recurrent_cell_operators();
Tables fourier_operators();
Tables fourier_composite_operators();
Tables spectrogram_operators();
Tables foreach_operators();
Tables fused_optimizer_operators();
Tables attention_operators();
Tables efficient_attention_operators();
Tables flash_attention_operators();
Tables cudnn_attention_operators();
Tables softmax_operators();
Tables class_loss_operators();
Tables loss_operators();
Tables margin_loss_operators();
Tables embedding_operators();
Tables embedding_bag_operators();
Tables dropout_operators();
Tables indexing_operators();
Tables scatter_operators();
Tables scatter_reduce_operators();
Tables sorting_operators();
Tables searching_operators();
Tables random_operators();
Tables convolution_operators();
Tables batch_norm_operators();
Tables batch_norm_variants();
Tables layer_norm_operators();
Tables pooling_operators();
Tables adaptive_pooling_operators();
Tables unpooling_operators();
Tables upsampling_operators();
Tables group_norm_operators();
Tables rms_norm_operators();
Tables weight_norm_operators();
Tables grid_sampling_operators();
Tables image_layout_operators();

}  // namespace metaprof
