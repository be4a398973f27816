// Text cases that name a recorded operator case: what PyTorch 2.11 saved there besides the inputs of the
// call, and what the per-node pass says that is kept besides the inputs of the model. Where recordings are
// present.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "meta/platform/platform.h"
#include "profiler/nodes/nodes.h"
#include "tests/cases/case_file.h"
#include "tests/evidence_folder.h"
#include "validation/recordings/case_log.h"

namespace metaprof {
namespace {

int64_t saved_besides_inputs(const RecordedCase& recorded) {
  std::set<int64_t> inputs, counted;
  for (const NamedTensor& input : recorded.inputs)
    for_each_tensor(input.value, [&](const RecordedTensor& tensor) { inputs.insert(tensor.storage); });
  int64_t bytes = 0;
  for (const RecordedSaved& saved : recorded.saved) {
    for_each_tensor(saved.value, [&](const RecordedTensor& tensor) {
      if (inputs.contains(tensor.storage) || !counted.insert(tensor.storage).second) return;
      bytes += multiply(numel(tensor.sizes), element_size(tensor.dtype));
    });
  }
  return bytes;
}

int64_t kept_besides_inputs(const TextCase& one) {
  const Platform device = platform_named(one.device);
  const NodeProfile nodes =
      profile_nodes(run_steps(one.program, device, one.options), device.device(), Granularity::function, {});
  Bytes kept = nodes.saved;
  for (const NodeRow& row : nodes.rows)
    if (row.node.kind == ModelNode::Kind::input) kept -= row.fwd_mem_out;
  return kept.count;
}

TEST(RecordedCases, SaveAsManyBytesAsTextCasesKeep) {
  const std::filesystem::path folder = evidence_folder().cases;
  std::map<std::string, std::map<std::string, TextCase>>
      wanted;  // by file, then by name of the recorded case
  for (const auto& entry : std::filesystem::directory_iterator("tests/cases")) {
    if (entry.path().extension() != ".case") continue;
    for (TextCase& one : read_cases(entry.path().string())) {
      if (one.recorded.empty()) continue;
      const std::string source = one.recorded.substr(0, one.recorded.find('/'));
      wanted[(folder / (source + "." + one.device + ".log.gz")).string()].emplace(one.recorded,
                                                                                  std::move(one));
    }
  }
  size_t compared = 0;
  for (const auto& [file, cases] : wanted) {
    CaseLog log(file);
    for (RecordedCase recorded; log.next(recorded);) {
      const auto found = cases.find(recorded.name);
      if (found == cases.end()) continue;
      EXPECT_EQ(kept_besides_inputs(found->second), saved_besides_inputs(recorded))
          << recorded.name << " " << file;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5u) << "dropout and batch norm on both devices, and batch norm by cuDNN";
}

}  // namespace
}  // namespace metaprof
