#pragma once
// What a captured program does without calling an operator, written as calls of `step::` (docs/reference/program.md).

#include <cstdint>
#include <optional>
#include <string_view>

namespace metaprof {

enum class StepCall : uint8_t {
  phase,  ///< (name, step, micro-batch or -1): a part of the step begins
  pause,  ///< (): what follows, up to the next phase, belongs to none
  backward,  ///< (roots, gradients, retain, create, inputs, accumulate), as the framework's engine is called; True
             ///< behind them: what hooks call within it follows, up to backward_leave
  backward_leave,  ///< (): … and ends
  hook,  ///< (number, "gradient" or "accumulated", tensor): a function of the program's is to run in backward
  hook_enter,  ///< (number): it runs; its results are the gradients that it is given. (number, name, root, path): it
               ///< runs before this node of autograd, whose edge is its last result
  edge,          ///< (tensor): the edge of autograd's graph that leads to it, without the tensor
  hook_leave,    ///< (number, gradients): … and gives these in their place (None: the same)
  gradient,      ///< (leaf): its .grad
  set_gradient,  ///< (leaf, tensor or None): .grad = …
  set_data,      ///< (tensor, other): .data = …
  alias,         ///< (tensor): another one over its memory, without its history; the result's facts say which
  integers,      ///< (list on the host, [numbers]): what it holds, where sizes follow from that
  tensor,        ///< (): one that no call of the program has made, as the result's facts say
  name,          ///< (purpose, name, tensor): what it is for, a Category
  grad_mode,     ///< (on)
  inference_mode,  ///< (on)
  attention,       ///< (flash, memory-efficient, math, cuDNN): which implementations of it may be chosen
  nodes,           ///< (count): so many nodes of autograd are made that the program does not have
  engine_thread,   ///< (on): what follows is called on the engine's own thread
  autocast_enter,  ///< (on, dtype, cache)
  autocast_leave,  ///< (): of the innermost region
  requires_grad,   ///< (leaf, on)
  function_enter,  ///< (name): the forward of a custom function begins, in which gradients are off
  function_leave,  ///< (name, arguments, results, saved, kept, graph or None): … and ends; the graph is its backward
  keep_versions_enter,  ///< (tensors): what is written to them, up to the end, autograd is not told
  keep_versions_leave,  ///< ()
  empty_cache,          ///< (): the allocator gives back what it has cached
  clear_saved,          ///< (): the function whose backward calls this saves nothing any more
  clear_gradients,      ///< (): … and holds no longer the gradients that it was given
  optimizer_enter,      ///< (): what follows is called by an optimizer's constructor or step
  optimizer_leave,      ///< (number, "made" or "step", class, parameters): … up to here
  saved_on_host_enter,  ///< (pinned): what autograd saves waits on the host (save_on_cpu)
  saved_on_host_leave,  ///< ()
  resize_storage,       ///< (tensor, bytes): of the memory that it looks into
  keep,                 ///< (tensors): the checkpointed region around it was given these and holds them, too
  record_stream,        ///< (tensor, number): its memory is also used on this stream
  stream,               ///< (number): what follows is called on this stream, 0: the default one
  placed,  ///< (operator, its arguments): what moving a module does with the weights that this operator takes
  optimizer,  ///< (number, "made" or "step", word, implementation, parameters): one of meta/optim
};

/// Nothing: the operator is not of `step::`. Errors: it is, but there is none of this name.
std::optional<StepCall> step_call(std::string_view op);

}  // namespace metaprof
