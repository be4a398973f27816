#pragma once
// Python's `x.contiguous()` in a line of source, and what stands around it: by that one finds the tensor among the calls
// that the line makes.

#include <optional>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace metaprof {

/// A call by its name and which of the line's calls of that name it is, counted from the left.
struct NamedCall {
  std::string_view name;
  int number = 0;
};

/// One `.contiguous()` of a line.
struct ContiguousCall {
  std::optional<NamedCall> of;    ///< what gives the tensor: `transpose` of `x.transpose(1, 2).contiguous()`
  std::optional<NamedCall> then;  ///< the method called on it: `view` of `x.contiguous().view(-1)`
  std::optional<NamedCall>
      within;             ///< the call whose argument it is: `bmm` of `torch.bmm(a.contiguous(), b)`
  int argument = 0;       ///< … and which one, by position
  bool is_whole = false;  ///< nothing else is bound or returned: `y = x.contiguous()`
  MemoryFormat format = MemoryFormat::contiguous;
};

/// All of a line, from left to right; those whose brackets close in a later line are left out.
std::vector<ContiguousCall> contiguous_calls_in(std::string_view code);

/// What stands before the number-th `.METHOD(` of the line.
struct Receiver {
  std::string_view call;      ///< it is the result of this call: `transpose` of `x.transpose(1, 2).view(-1)`
  std::string_view variable;  ///< it is this name: `x` of `x.view(-1)`
};
Receiver receiver_of(std::string_view code, NamedCall method);

}  // namespace metaprof
