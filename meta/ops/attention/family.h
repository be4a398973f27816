#pragma once
// Scaled dot product attention, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables attention_operators();            // attention.cpp
Tables cudnn_attention_operators();      // attention_cudnn.cpp
Tables efficient_attention_operators();  // attention_efficient.cpp
Tables flash_attention_operators();      // attention_flash.cpp
Tables flex_attention_operators();       // flex_attention.cpp
Tables encoder_layer_operators();        // encoder_layer.cpp

inline constexpr Tables (*kAttentionFamily[])() = {attention_operators,           cudnn_attention_operators,
                                                   efficient_attention_operators, flash_attention_operators,
                                                   flex_attention_operators,      encoder_layer_operators};

}  // namespace metaprof
