#include "meta/ops/all.h"

#include "meta/autograd/state.h"

namespace metaprof {

const Registry& standard_registry() {
  static const Registry registry = [] {
    std::vector<Op> all;
    // clang-format off
    for (auto family : {
             add_view_operators,
             add_view_part_operators,
             add_view_composite_operators,
             add_view_copy_operators,
             add_creation_operators,
             add_resizing_operators,
             add_sparse_operators,
             add_unary_operators,
             add_binary_operators,
             add_alias_operators,
             add_whole_tensor_operators,
             add_linear_solver_operators,
             add_decomposition_operators,
             add_factored_system_operators,
             add_sequence_loss_operators,
             add_matrix_norm_operators,
             add_tensor_equation_operators,
             add_singular_value_operators,
             add_choice_operators,
             add_comparison_operators,
             add_activation_operators,
             add_gated_activation_operators,
             add_power_operators,
             add_special_operators,
             add_angle_operators,
             add_padding_operators,
             add_repeating_operators,
             add_factory_operators,
             add_assignment_operators,
             add_gradient_operators,
             add_sum_operators,
             add_extremum_operators,
             add_selection_operators,
             add_statistics_operators,
             add_covariance_operators,
             add_quantile_operators,
             add_norm_operators,
             add_scan_operators,
             add_joining_operators,
             add_matmul_operators,
             add_vector_product_operators,
             add_contraction_operators,
             add_einsum_operators,
             add_matrix_chain_operators,
             add_vector_geometry_operators,
             add_recurrent_operators,
             add_cudnn_recurrent_operators,
             add_recurrent_cell_operators,
             add_fourier_operators,
             add_fourier_composite_operators,
             add_spectrogram_operators,
             add_foreach_operators,
             add_fused_optimizer_operators,
             add_attention_operators,
             add_efficient_attention_operators,
             add_flash_attention_operators,
             add_cudnn_attention_operators,
             add_softmax_operators,
             add_class_loss_operators,
             add_loss_operators,
             add_margin_loss_operators,
             add_embedding_operators,
             add_embedding_bag_operators,
             add_dropout_operators,
             add_indexing_operators,
             add_scatter_operators,
             add_scatter_reduce_operators,
             add_sorting_operators,
             add_searching_operators,
             add_random_operators,
             add_convolution_operators,
             add_batch_norm_operators,
             add_batch_norm_variants,
             add_layer_norm_operators,
             add_pooling_operators,
             add_adaptive_pooling_operators,
             add_unpooling_operators,
             add_upsampling_operators,
             add_group_norm_operators,
             add_rms_norm_operators,
             add_weight_norm_operators,
             add_grid_sampling_operators,
             add_image_layout_operators,
         })
      family(all);
    // clang-format on
    return Registry(std::move(all));
  }();
  return registry;
}

std::unique_ptr<Session> make_session(const DeviceProfile& profile) {
  auto session = std::make_unique<Session>(profile, standard_registry());
  install_autograd(*session);
  return session;
}

}  // namespace metaprof
