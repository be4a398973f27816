#pragma once
// Autocast: arguments are cast to the type that an operator's record asks for; casts of parameters are kept
// until the outermost region ends (aten/src/ATen/autocast_mode.h, 2.11). On the CPU the rules are others
// (autocast_on_cpu.h).

#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "meta/session/call.h"

namespace metaprof {

struct AutocastState final : LayerState {
  struct Cached {
    Tensor original, cast;  // the original is held, so that its address stays its own
  };
  std::unordered_map<const TensorImpl*, size_t> index;  // into `cached`
  std::vector<Cached> cached;                           // in the order in which they were cast, and go
  int nesting = 0;
  std::vector<std::optional<Autocast>> rules_on_cpu;  // by Operator::id; nothing: nobody has asked yet
};

/// Turns autocast on (or off) for a scope.
class AutocastRegion {
 public:
  AutocastRegion(Session& session, bool enabled, DType dtype, bool cache = true);
  ~AutocastRegion();
  AutocastRegion(const AutocastRegion&) = delete;

 private:
  Session& session_;
  Modes before_;
};

/// The tensor in this type: itself, the kept cast of a parameter, or a new cast.
Tensor cached_cast(Session& session, const Tensor& tensor, DType to);

/// Casts these arguments of a call, in this order, each as cached_cast does.
void cast_arguments(Call& call, std::initializer_list<Name> names, DType to);

void autocast_layer(Call& call);

}  // namespace metaprof
