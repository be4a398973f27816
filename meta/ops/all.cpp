#include "meta/ops/all.h"

#include "meta/autograd/state.h"

namespace metaprof {

const Registry& standard_registry() {
  static const Registry registry = [] {
    std::vector<Records> all;
    // clang-format off
    for (auto family : {
             view_operators,
             view_part_operators,
             view_composite_operators,
             view_copy_operators,
             creation_operators,
             resizing_operators,
             sparse_operators,
             unary_operators,
             binary_operators,
             alias_operators,
             whole_tensor_operators,
             linear_solver_operators,
             linear_system_operators,
             decomposition_operators,
             factored_system_operators,
             sequence_loss_operators,
             matrix_norm_operators,
             tensor_equation_operators,
             singular_value_operators,
             choice_operators,
             comparison_operators,
             activation_operators,
             gated_activation_operators,
             power_operators,
             special_operators,
             angle_operators,
             padding_operators,
             repeating_operators,
             factory_operators,
             assignment_operators,
             gradient_operators,
             sum_operators,
             extremum_operators,
             selection_operators,
             statistics_operators,
             covariance_operators,
             quantile_operators,
             norm_operators,
             scan_operators,
             joining_operators,
             matmul_operators,
             vector_product_operators,
             contraction_operators,
             einsum_operators,
             matrix_chain_operators,
             vector_geometry_operators,
             recurrent_operators,
             cudnn_recurrent_operators,
             recurrent_cell_operators,
             fourier_operators,
             fourier_composite_operators,
             spectrogram_operators,
             foreach_operators,
             fused_optimizer_operators,
             attention_operators,
             efficient_attention_operators,
             flash_attention_operators,
             cudnn_attention_operators,
             softmax_operators,
             class_loss_operators,
             loss_operators,
             margin_loss_operators,
             embedding_operators,
             embedding_bag_operators,
             dropout_operators,
             indexing_operators,
             scatter_operators,
             scatter_reduce_operators,
             sorting_operators,
             searching_operators,
             random_operators,
             convolution_operators,
             batch_norm_operators,
             batch_norm_variants,
             layer_norm_operators,
             pooling_operators,
             adaptive_pooling_operators,
             unpooling_operators,
             upsampling_operators,
             group_norm_operators,
             rms_norm_operators,
             weight_norm_operators,
             grid_sampling_operators,
             image_layout_operators,
         })
      for (Records records : family()) all.push_back(records);
    // clang-format on
    return Registry(all);
  }();
  return registry;
}

std::unique_ptr<Session> make_session(const DeviceProfile& profile) {
  auto session = std::make_unique<Session>(profile, standard_registry());
  install_autograd(*session);
  return session;
}

}  // namespace metaprof
