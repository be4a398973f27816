#pragma once
// Other sizes of inputs than those that a program was exported with.
//
// Where the export has symbols, these are bound (symbols.h). Else the sizes stand as plain numbers in the
// calls: view(x, (4, 512, 768)). What a call is given now says which of them must change: the numbers of a
// view must multiply to the elements that there are, those of an expansion agree with the dimensions that are
// not expanded. Where a call takes no tensor (zeros, arange), a number that was the size of an input becomes
// the input's new size. A model that computes with its sizes in other ways gives sizes that do not fit, which
// is an error of the call; export it with dynamic_shapes.

#include <optional>
#include <string>

#include "program/program.h"

namespace metaprof {

/// Gives an input new sizes. Errors: no such input; another number of dimensions; symbols cannot be bound to
/// it.
void resize_input(Program& program, const std::string& input, SizesView sizes);

/// Gives the first dimension of every input the new size, if it is that of the first input now. Errors: there
/// is no input tensor.
void set_batch(Program& program, int64_t batch);

/// The same for the sequence length: the second dimension of inputs of integers (token ids, labels).
void set_sequence(Program& program, int64_t length);

/// What the number becomes that a call without tensors takes. 1 stays: it says nothing.
int64_t resized_number(const Resizing& resizing, int64_t number);
/// The sizes that a tensor is viewed with: a tensor of sizes `exported` was viewed as `target`, now it has
/// sizes `actual`. Nothing: no numbers of `target` can be changed so that they fit.
std::optional<Sizes> resized_view(const Resizing& resizing, SizesView exported, SizesView target,
                                  SizesView actual);
/// The same for an expansion.
std::optional<Sizes> resized_expansion(const Resizing& resizing, SizesView exported, SizesView target,
                                       SizesView actual);

}  // namespace metaprof
