#pragma once
// The narrow waist: what a run did, as a flat array of small events. Running produces a Trace; everything
// downstream (opcount, profiler, reports) reads traces and nothing else.
//
// A storage is numbered from 1 in the order of birth; 0 means "no storage". Text is interned: an index into
// `text`, where 0 is the empty string. Bytes are as asked for, before any allocator rounds them.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/plain_vector.h"
#include "core/shape.h"
#include "core/units.h"
#include "meta/trace/kernel.h"

namespace metaprof {

/// What a storage is for. Given where it is born; `Event::Kind::category` refines it later.
enum class Category : uint8_t {
  parameter,
  buffer,
  input,
  activation,
  gradient,
  optimizer_state,
  temporary,
  workspace,
  cached_copy,
  kept,  ///< what a variable of the program holds, and no module, optimizer or graph
};
inline constexpr int kCategories = 10;
std::string_view to_string(Category);

/// The part of a training step in which a call happens.
enum class Phase : uint8_t { setup, forward, backward, recompute, optimizer, zero_grad };
inline constexpr int kPhases = 6;
std::string_view to_string(Phase);

/// One thing that happened. What `id`, `detail` and `value` mean depends on the kind.
struct Event {
  enum class Kind : uint8_t {
    call,           ///< an operator begins; id: index into `calls`, value: 1 + the program's node, or 0
    end,            ///< the last begun operator or node ends; id: as at its beginning
    node,           ///< the engine begins to evaluate a node; id: index into `nodes`
    alloc,          ///< a storage is born; id: storage, detail: Category, stream
    free,           ///< its last owner let go; id: storage
    save,           ///< a node keeps a storage for backward; id: storage, value: index into `nodes`
    release,        ///< it no longer does; as `save`
    category,       ///< from here on the storage is something else; id: storage, detail: Category
    pause,          ///< what follows, up to the next phase, belongs to none: a constructor between two phases
    phase,          ///< a phase begins; detail: Phase, id: step, value: micro-batch or -1
    enter,          ///< a module's forward begins; id: text of its path
    leave,          ///< … ends
    wait,           ///< stream `stream` waits for stream `id`
    record_stream,  ///< storage `id` is also used on stream `stream`: its block is reusable only after that
                    ///< work
  };
  Kind kind;
  uint8_t detail = 0;
  uint16_t stream = 0;
  uint32_t id = 0;
  int64_t value = 0;
};

/// A tensor as a call saw it.
struct TensorRecord {
  uint32_t storage = 0;
  uint32_t shape = 0;  ///< index into `numbers` of its first size
  uint8_t dims = 0;
  DType dtype = DType::f32;
  bool on_host = false;
  bool requires_grad = false;
};

/// One call of an operator.
struct CallRecord {
  uint32_t op = 0;  ///< text: "aten::addmm" (with the overload: "aten::add.Tensor")
  uint32_t module =
      0;  ///< text: path of the module whose forward made the call, or whose forward the node belongs to
  Phase phase = Phase::setup;
  bool composite = false;  ///< made of the calls inside it; costs nothing itself
  bool unmodelled =
      false;  ///< unknown operator: outputs from the program's own record, temporaries and FLOPs unknown
  bool assumed =
      false;  ///< the size of its results follows from data that nobody knows, and is an assumption
  Kernel kernel = Kernel::other;  ///< what computes it
  uint16_t depth = 0;             ///< 0: called by the program, a formula or the engine itself
  uint16_t inputs = 0, outputs = 0;
  uint32_t first_tensor = 0;  ///< index into `tensors`: inputs, then outputs
  uint32_t node = 0;          ///< 1 + index into `nodes` of the node being evaluated; 0 outside backward
  Flops counted;              ///< as the framework's own counter counts
  Flops own;                  ///< by our formulas where the framework's counter says 0
  Bytes moved;                ///< read and written by an ideal kernel
};

/// One node of the autograd graph.
struct NodeRecord {
  uint32_t name = 0;    ///< text: "AddmmBackward0"
  uint32_t module = 0;  ///< text: module whose forward made it
  uint32_t call = 0;    ///< 1 + index into `calls` of the call that made it; 0: AccumulateGrad and the like
  uint64_t sequence = 0;
  uint32_t first_edge = 0;  ///< index into `edges`
  uint16_t edge_count = 0;
  uint32_t inner = 0;  ///< 1 + index of the node that it runs as a part of itself (CopySlices); 0: none
};

/// A parameter or buffer of the model, in the order of registration; tied ones once.
struct ParameterRecord {
  std::vector<std::string> names;  ///< first-registered name first; the others are tied to it
  Sizes sizes;
  DType dtype = DType::f32;
  bool requires_grad = false;
  bool buffer = false;
  uint32_t storage = 0;
};

/// A storage, as far as it is known when it is born.
struct StorageRecord {
  Bytes bytes;
  Device device;
  uint32_t call = 0;    ///< 1 + index into `calls` of the innermost call that made it; 0: none
  uint32_t module = 0;  ///< text
  uint32_t name = 0;    ///< text: a parameter's or buffer's name, "cuBLAS workspace" …; 0: none
  Category category = Category::activation;
  bool estimated = false;  ///< a library alone knows its size, and was not asked
  uint32_t size_of_platform =
      0;  ///< 1 + index into Questions::sizes, which `bytes` is the answer to; 0: no other platform
          ///< says another size
};

class Trace {
 public:
  Trace();

  PlainVector<Event> events;
  PlainVector<CallRecord> calls;
  PlainVector<NodeRecord> nodes;
  PlainVector<TensorRecord> tensors;
  PlainVector<int64_t> numbers;
  PlainVector<StorageRecord> storages;  ///< [0] is unused
  PlainVector<uint32_t> edges;          ///< of nodes: 1 + index of the next node, 0 for none
  std::vector<ParameterRecord> parameters;
  std::vector<uint32_t> losses;  ///< per forward phase: 1 + index of the loss's node, 0 if it has none

  /// The text with this index.
  std::string_view text(uint32_t index) const { return texts_[index]; }
  /// The index of this text; the same text has the same index.
  uint32_t intern(std::string_view text);

  /// What was asked for.
  Bytes bytes(uint32_t storage) const { return storages[storage].bytes; }

  SizesView shape(const TensorRecord& t) const { return {numbers.data() + t.shape, t.dims}; }

  void add(Event event) { events.push_back(event); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> index_;
};

}  // namespace metaprof
