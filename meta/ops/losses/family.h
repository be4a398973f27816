#pragma once
// Losses, by file.

#include "meta/op/record.h"

namespace metaprof {

Tables class_loss_operators();     // class_losses.cpp
Tables loss_operators();           // losses.cpp
Tables margin_loss_operators();    // margin_losses.cpp
Tables sequence_loss_operators();  // sequence_losses.cpp

inline constexpr Tables (*kLossesFamily[])() = {class_loss_operators, loss_operators, margin_loss_operators,
                                                sequence_loss_operators};

}  // namespace metaprof
