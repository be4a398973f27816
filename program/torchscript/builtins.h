#pragma once
// What TorchScript does without tensors: numbers, text, lists, dictionaries, and questions about tensors that their
// geometry answers (torch/csrc/jit/runtime/register_prim_ops.cpp).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "program/torchscript/item.h"

namespace metaprof::script {

/// The result of a function by the name that the code has ("torch.len", "ops.prim.dtype"); nothing: it is not one of
/// these, or it is an operator of these arguments, as torch.add is of tensors. Lists are changed in place.
/// Errors: arguments that it does not take; a division by zero; an index that is not there; a result of more than 64 bits,
/// or of more than a million elements.
std::optional<Item> call_builtin(std::string_view name, std::span<const Item> arguments);

/// x[index] of a list, a tuple, a text or a dictionary. Errors: there is none.
Item element_of(const Item& whole, const Item& index);

/// As Python's bool(), int() and float() of a number. Errors: of anything else; a tensor's says that its value is not known.
bool truth(const Item& item);
Item as_integer(const Item& item);
Item as_real(const Item& item);

}  // namespace metaprof::script
