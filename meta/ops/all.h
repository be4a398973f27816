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
void add_linear_solver_operators(std::vector<Op>& ops);
void add_decomposition_operators(std::vector<Op>& ops);
void add_factored_system_operators(std::vector<Op>& ops);
void add_sequence_loss_operators(std::vector<Op>& ops);
void add_matrix_norm_operators(std::vector<Op>& ops);
void add_tensor_equation_operators(std::vector<Op>& ops);
void add_singular_value_operators(std::vector<Op>& ops);
void add_alias_operators(std::vector<Op>& ops);
void add_whole_tensor_operators(std::vector<Op>& ops);
void add_view_operators(std::vector<Op>& ops);
void add_view_part_operators(std::vector<Op>& ops);
void add_view_composite_operators(std::vector<Op>& ops);
void add_view_copy_operators(std::vector<Op>& ops);
void add_creation_operators(std::vector<Op>& ops);
void add_resizing_operators(std::vector<Op>& ops);
void add_sparse_operators(std::vector<Op>& ops);
void add_unary_operators(std::vector<Op>& ops);
void add_binary_operators(std::vector<Op>& ops);
void add_choice_operators(std::vector<Op>& ops);
void add_comparison_operators(std::vector<Op>& ops);
void add_activation_operators(std::vector<Op>& ops);
void add_gated_activation_operators(std::vector<Op>& ops);
void add_power_operators(std::vector<Op>& ops);
void add_special_operators(std::vector<Op>& ops);
void add_angle_operators(std::vector<Op>& ops);
void add_padding_operators(std::vector<Op>& ops);
void add_repeating_operators(std::vector<Op>& ops);
void add_factory_operators(std::vector<Op>& ops);
void add_assignment_operators(std::vector<Op>& ops);
void add_gradient_operators(std::vector<Op>& ops);
void add_sum_operators(std::vector<Op>& ops);
void add_extremum_operators(std::vector<Op>& ops);
void add_selection_operators(std::vector<Op>& ops);
void add_statistics_operators(std::vector<Op>& ops);
void add_covariance_operators(std::vector<Op>& ops);
void add_quantile_operators(std::vector<Op>& ops);
void add_norm_operators(std::vector<Op>& ops);
void add_scan_operators(std::vector<Op>& ops);
void add_joining_operators(std::vector<Op>& ops);
void add_matmul_operators(std::vector<Op>& ops);
void add_vector_product_operators(std::vector<Op>& ops);
void add_contraction_operators(std::vector<Op>& ops);
void add_einsum_operators(std::vector<Op>& ops);
void add_matrix_chain_operators(std::vector<Op>& ops);
void add_vector_geometry_operators(std::vector<Op>& ops);
void add_recurrent_operators(std::vector<Op>& ops);
void add_cudnn_recurrent_operators(std::vector<Op>& ops);
void add_recurrent_cell_operators(std::vector<Op>& ops);
void add_fourier_operators(std::vector<Op>& ops);
void add_fourier_composite_operators(std::vector<Op>& ops);
void add_spectrogram_operators(std::vector<Op>& ops);
void add_foreach_operators(std::vector<Op>& ops);
void add_fused_optimizer_operators(std::vector<Op>& ops);
void add_attention_operators(std::vector<Op>& ops);
void add_efficient_attention_operators(std::vector<Op>& ops);
void add_flash_attention_operators(std::vector<Op>& ops);
void add_cudnn_attention_operators(std::vector<Op>& ops);
void add_softmax_operators(std::vector<Op>& ops);
void add_class_loss_operators(std::vector<Op>& ops);
void add_loss_operators(std::vector<Op>& ops);
void add_margin_loss_operators(std::vector<Op>& ops);
void add_embedding_operators(std::vector<Op>& ops);
void add_embedding_bag_operators(std::vector<Op>& ops);
void add_dropout_operators(std::vector<Op>& ops);
void add_indexing_operators(std::vector<Op>& ops);
void add_scatter_operators(std::vector<Op>& ops);
void add_scatter_reduce_operators(std::vector<Op>& ops);
void add_sorting_operators(std::vector<Op>& ops);
void add_searching_operators(std::vector<Op>& ops);
void add_random_operators(std::vector<Op>& ops);
void add_convolution_operators(std::vector<Op>& ops);
void add_batch_norm_operators(std::vector<Op>& ops);
void add_batch_norm_variants(std::vector<Op>& ops);
void add_layer_norm_operators(std::vector<Op>& ops);
void add_pooling_operators(std::vector<Op>& ops);
void add_adaptive_pooling_operators(std::vector<Op>& ops);
void add_unpooling_operators(std::vector<Op>& ops);
void add_upsampling_operators(std::vector<Op>& ops);
void add_group_norm_operators(std::vector<Op>& ops);
void add_rms_norm_operators(std::vector<Op>& ops);
void add_weight_norm_operators(std::vector<Op>& ops);
void add_grid_sampling_operators(std::vector<Op>& ops);
void add_image_layout_operators(std::vector<Op>& ops);

}  // namespace metaprof
