#pragma once
// The tensors of a replay: those of the recording and which of ours stand for them.

#include <unordered_set>
#include <vector>

#include "meta/session/call.h"
#include "validation/cases/tensor_comparison.h"
#include "validation/recordings/case_log.h"

namespace metaprof {

class CaseTensors {
 public:
  /// A recording does not tell apart tensors of one text (views of a storage with the same geometry, empty
  /// tensors). The latest one is taken. Other choices: in choice number k (from 1), one argument takes an
  /// older one, counting arguments in order and for each the tensors from the latest on; `kInOrder`: those of
  /// one call are different ones, in the order in which they were made.
  static constexpr int kInOrder = -1;
  CaseTensors(const RecordedCase& recorded, Session& session, int choice)
      : case_(recorded),
        session_(session),
        gpu_(session.device.is_cuda() ? session.device : Device{DeviceType::cuda, 0}),
        choice_(choice) {
    map_.gpu_begins_at_zero = session.device.is_cpu();
  }

  /// How many other choices there are.
  int ambiguous() const { return ambiguous_; }

  /// Makes the inputs, and every other device storage that the recording has without having made it.
  void make_inputs();
  /// An input, by the recording's name.
  Tensor input(std::string_view name) const;

  /// The arguments of a call; a tensor is the latest one with the recorded storage and geometry.
  std::vector<Value> arguments(const Operator& op, const std::vector<RecordedValue>& inputs);
  /// What a call returned stands for what it returned in the recording.
  void bind(ResultList& results, const std::vector<RecordedValue>& outputs);
  /// The program let go of the tensors over this storage.
  void release(int64_t storage);
  /// The program's function has returned: only inputs, outputs and what the recording never frees are held.
  void release_unused();
  /// What the case returned, one per recorded output; undefined where there is nothing like it. Known after
  /// `release_unused`.
  const std::vector<Tensor>& outputs() const { return outputs_; }

  /// A new tensor with the recorded geometry. Its storage is no event of the replay.
  Tensor make(const RecordedTensor& recorded);

  StorageMap& map() { return map_; }
  /// Storages that were made for the replay rather than by an operator.
  const std::unordered_set<uint32_t>& hidden() const { return hidden_; }

 private:
  struct Held {
    RecordedTensor recorded;
    Tensor tensor;
    bool input = false;
  };

  Ref<Storage> storage_for(const RecordedTensor& recorded);
  Tensor find(const RecordedTensor& recorded) const;
  std::vector<Tensor> all_like(const RecordedTensor& recorded) const;
  Tensor choose(const RecordedTensor& recorded, Tensor found);
  Tensor tensor_argument(const RecordedTensor& recorded);
  void find_outputs();
  void note_span(const RecordedTensor& recorded);
  void hold(const RecordedTensor& recorded, const Tensor& tensor, bool input);

  const RecordedCase& case_;
  Session& session_;
  Device gpu_;  // cases of the host may move something there
  StorageMap map_;
  int choice_;
  int ambiguous_ = 0;
  std::vector<const RecordedTensor*> chosen_;  // of this call, so far
  std::vector<const RecordedTensor*> wanted_;  // all tensors of this call
  std::vector<Held> held_;
  std::vector<std::pair<std::string, Tensor>> inputs_;
  std::vector<Tensor> outputs_;
  std::unordered_map<int64_t, int64_t> spans_;  // bytes that tensors of a storage reach
  std::unordered_map<int64_t, Ref<Storage>> made_;
  std::unordered_set<uint32_t> hidden_;
};

}  // namespace metaprof
