#include "estimate/epoch/epoch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/formats/display.h"
#include "estimate/model_run.h"
#include "estimate/parallel.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/prepare.h"
#include "estimate/replay.h"
#include "profiler/allocator/stretches.h"

namespace metaprof {
namespace {

// Two steps and one more where the second is not as the first: the last one is as all that follow.
constexpr int kSteps = 3;
constexpr int64_t kTriedBucket = 50;  // batches: as the sampler of transformers' group_by_length

RunOptions with_shape(RunOptions run, const BatchShape& batch) {
  run.batch = static_cast<int>(batch.samples);
  run.sequence = static_cast<int>(batch.tokens);
  return run;
}

std::vector<uint32_t> inputs_in(const Trace& trace) {
  std::vector<uint32_t> slots;
  for (const Event& event : trace.events)
    if (event.kind == Event::Kind::alloc && static_cast<Category>(event.detail) == Category::input)
      slots.push_back(event.id);
  return slots;
}

void check(const Model& model, const RunOptions& options) {
  if (model.is_trace()) fail("--lengths has no effect on a trace, whose steps are fixed");
  if (model.program.captured)
    fail("--lengths: a captured program has batches of its own; give the model's export or configuration");
  if (options.step.execution == Execution::graph)
    fail("--lengths: --execution graph keeps a plan for each shape, which is not followed; leave it out");
  if (options.sequence) fail("--sequence: the lengths are those of --lengths; leave one of them out");
}

OverSteps over_steps(std::vector<int64_t> peaks) {
  OverSteps result;
  if (peaks.empty()) return result;
  const auto largest = std::ranges::max_element(peaks);
  result.largest = {*largest};
  result.step = largest - peaks.begin();
  double sum = 0;
  for (const int64_t peak : peaks) sum += static_cast<double>(peak);
  result.mean = {static_cast<int64_t>(sum / static_cast<double>(peaks.size()))};
  const auto place = static_cast<ptrdiff_t>((peaks.size() - 1) * 99 / 100);
  std::nth_element(peaks.begin(), peaks.begin() + place, peaks.end());
  result.percentile_99 = {peaks[static_cast<size_t>(place)]};
  return result;
}

}  // namespace

struct Epoch::Parts {
  // What a batch of one shape asks for.
  struct Shape {
    Requests requests = {};             // of the run: what comes before the first step is needed, too
    std::vector<uint32_t> inputs = {};  // slots of the batch
    std::vector<Stretch> first = {}, later = {};
  };

  const Model& model;
  RunOptions options;
  Platform platform;
  MemoryLimit limit;
  WorkspacePlanners& planners;
  std::map<BatchShape, Shape> shapes;

  Shape shape_of(const BatchShape& batch) const {
    const RunOptions run = with_shape(options, batch);
    WorkspaceSources workspaces;
    const Program program = with_inputs(model, run);
    const OptimizerChoice own{run.step.optimizer, run.step.optimizer_impl};
    const auto steps = run_in_turn(program, run, platform, {&own, 1}, planners, workspaces);
    const Trace trace = steps ? Trace() : run_model(program, run, platform, planners, workspaces);
    const Trace& used = steps ? steps->trace : trace;
    Shape shape{.requests = requests_of(used, used.events, platform.device()), .inputs = inputs_in(used)};
    shape.first = stretches(shape.requests, 0, shape.inputs);
    shape.later = stretches(shape.requests, shape.requests.parts.back().step, shape.inputs);
    return shape;
  }

  // Runs those that are not known yet. Of all but the first only the stretches are kept: an epoch may have thousands.
  void learn(std::span<const BatchShape> batches) {
    std::set<BatchShape> unknown;
    for (const BatchShape& batch : batches)
      if (!shapes.contains(batch)) unknown.insert(batch);
    const std::vector<BatchShape> list(unknown.begin(), unknown.end());
    std::vector<Shape> found(list.size());
    in_parallel(list.size(), [&](size_t i) {
      found[i] = shape_of(list[i]);
      PlainVector<Request>& requests = found[i].requests.list;
      const auto setup_ends = std::ranges::find_if(requests, [&](const Request& request) {
        return request.kind == Request::Kind::begin_part &&
               found[i].requests.parts[request.slot].phase != Phase::setup;
      });
      requests.resize(static_cast<size_t>(setup_ends - requests.begin()));
      requests.shrink_to_fit();
    });
    for (size_t i = 0; i < list.size(); ++i) shapes.emplace(list[i], std::move(found[i]));
  }
};

Epoch::Epoch(const Model& model, const RunOptions& options, WorkspacePlanners& planners) {
  check(model, options);
  RunOptions run = as_captured(options, model.program);
  run.step.steps = kSteps;
  const Platform platform = platform_of(run, model.program);
  const MemoryLimit limit = memory_limit(run, platform);
  parts_ = std::make_unique<Parts>(Parts{model, std::move(run), platform, limit, planners, {}});
}

Epoch::~Epoch() = default;

int64_t Epoch::samples() const {
  if (parts_->options.batch) return *parts_->options.batch;
  const std::vector<InputRow> inputs = inputs_of(parts_->model.program);
  if (inputs.empty() || inputs[0].sizes.empty()) fail("--lengths: the model has no input with a batch");
  return inputs[0].sizes[0];
}

Bytes Epoch::memory() const { return parts_->limit.available; }

EpochRun Epoch::play(std::span<const BatchShape> batches, Bytes memory, int64_t empty_cache_every,
                     const std::string* conf) {
  parts_->learn(batches);
  RunOptions run = parts_->options;
  if (conf) run.alloc_conf = *conf;
  const auto allocator = make_allocator(run, parts_->platform, memory);
  StretchReplay replay(*allocator);
  EpochRun result;
  std::vector<int64_t> allocated, reserved;
  const Parts::Shape& first = parts_->shapes.at(batches[0]);
  if (!replay.set_up(first.requests, first.inputs)) {
    const AllocatorNumbers now = allocator->numbers();
    result.ended = EpochEnd{.batch = batches[0],
                            .phase = Phase::setup,
                            .allocated = {now.allocated_bytes.current},
                            .reserved = {now.reserved_bytes.current}};
  }
  const auto micros = static_cast<size_t>(run.step.accumulate);
  for (size_t i = 0; i < batches.size() / micros * micros && !result.ended; ++i) {
    const Parts::Shape& shape = parts_->shapes.at(batches[i]);
    const auto step = static_cast<int64_t>(i / micros);
    if (i % micros == 0) allocator->reset_peaks();
    const auto& parts = step == 0 ? shape.first : shape.later;
    if (const auto failure = replay.play(parts[i % micros], i > 0))
      result.ended = EpochEnd{
          step, batches[i], failure->phase, failure->requested, failure->allocated, failure->reserved};
    if ((i + 1) % micros != 0 && !result.ended) continue;
    const AllocatorNumbers now = allocator->numbers();
    allocated.push_back(now.allocated_bytes.peak);
    reserved.push_back(now.reserved_bytes.peak);
    if (result.ended) break;
    ++result.steps;
    if (empty_cache_every > 0 && result.steps % empty_cache_every == 0) allocator->empty_cache();
  }
  result.allocated = over_steps(std::move(allocated));
  result.reserved = over_steps(std::move(reserved));
  return result;
}

std::optional<EpochRun> Epoch::run_if_it_fits(std::span<const BatchShape> batches, Bytes memory,
                                              int64_t empty_cache_every) {
  const auto micros = static_cast<size_t>(parts_->options.step.accumulate);
  const std::vector<BatchShape> largest(2 * micros, largest_of(batches));
  if (play(largest, unlimited_memory()).allocated.largest > memory) return std::nullopt;
  const EpochRun all = play(batches, memory, empty_cache_every);
  return all.ended ? std::nullopt : std::optional(all);
}

std::vector<InputRow> Epoch::inputs(const BatchShape& batch) const {
  return inputs_of(with_inputs(parts_->model, with_shape(parts_->options, batch)));
}

BatchShape largest_of(std::span<const BatchShape> batches) {
  return *std::ranges::max_element(
      batches, {}, [](const BatchShape& batch) { return std::pair(batch.padded(), batch.tokens); });
}

namespace {

// The same samples, in other batches or on another allocator.
class Changes {
 public:
  Changes(Epoch& epoch, const RunOptions& run, const EpochOptions& asked, const Lengths& lengths)
      : epoch_(epoch), run_(run), asked_(asked), lengths_(lengths) {}

  std::vector<EpochChange> all(const std::vector<BatchShape>& batches) {
    std::vector<BatchShape> sorted = batches;
    std::ranges::stable_sort(sorted, std::greater<>(), &BatchShape::padded);
    add("the largest batch first", sorted);
    if (run_.alloc_conf.empty()) {
      const std::string conf = "expandable_segments:True";
      add("--alloc-conf " + conf, batches, &conf);
    }
    if (lengths_.samples.empty()) return std::move(rows_);
    if (asked_.bucket == 0) add_batches("--bucket", &EpochOptions::bucket, kTriedBucket);
    if (asked_.max_tokens == 0) add_batches("--max-tokens", &EpochOptions::max_tokens, usual_budget(batches));
    return std::move(rows_);
  }

 private:
  void add(const std::string& change, const std::vector<BatchShape>& batches,
           const std::string* conf = nullptr) {
    EpochChange row{.change = change, .padding = padding_of(lengths_, batches)};
    row.run = epoch_.play(batches, epoch_.memory(), asked_.empty_cache_every, conf);
    row.fits = !row.run.ended;
    if (!row.fits) row.run = epoch_.play(batches, unlimited_memory(), asked_.empty_cache_every, conf);
    row.steps = row.run.steps;
    rows_.push_back(std::move(row));
  }

  void add_batches(const std::string& option, int64_t EpochOptions::*field, int64_t value) {
    EpochOptions other = asked_;
    other.*field = value;
    add(fmt::format("{} {}", option, value), batches_of(lengths_, other, epoch_.samples()));
  }

  // As many tokens in each batch as they have on average, so that about as many steps do the work.
  int64_t usual_budget(const std::vector<BatchShape>& batches) const {
    int64_t padded = 0;
    for (const BatchShape& batch : batches) padded += batch.padded();
    return std::max(*std::ranges::max_element(lengths_.samples),
                    padded / static_cast<int64_t>(batches.size()));
  }

  Epoch& epoch_;
  const RunOptions& run_;
  const EpochOptions& asked_;
  const Lengths& lengths_;
  std::vector<EpochChange> rows_;
};

// Of a model of pictures the length would say nothing.
void check_inputs(const Epoch& epoch, const BatchShape& batch) {
  for (const InputRow& input : epoch.inputs(batch))
    if (std::ranges::find(input.sizes, batch.tokens) != input.sizes.end()) return;
  fail("--lengths: the model has no input with {} positions: it takes no sequences", batch.tokens);
}

// The first change with which everything runs.
std::string fix_of(const EpochReport& epoch) {
  const auto fits = std::ranges::find_if(epoch.changes, &EpochChange::fits);
  if (!epoch.run.ended || fits == epoch.changes.end()) return "";
  return fmt::format("{} → {}", fits->change, human_bytes(fits->run.reserved.largest.count));
}

}  // namespace

EpochReport run_epoch(const Model& model, const RunOptions& options, const EpochOptions& asked,
                      WorkspacePlanners& planners, EpochChanges changes) {
  Epoch epoch(model, options, planners);
  const Lengths lengths = read_lengths(asked.lengths);
  const std::vector<BatchShape> batches = batches_of(lengths, asked, epoch.samples());
  const auto micros = static_cast<size_t>(options.step.accumulate);
  if (batches.size() < micros)
    fail("--lengths: makes {} batches, fewer than the {} of one step (--accumulate)", batches.size(), micros);
  EpochReport report{.samples = 0,
                     .batches = static_cast<int64_t>(batches.size()),
                     .steps = static_cast<int64_t>(batches.size() / micros),
                     .shapes = static_cast<int64_t>(std::set(batches.begin(), batches.end()).size()),
                     .left_over = static_cast<int64_t>(batches.size() % micros),
                     .knows_samples = lengths.batches.empty(),
                     .padding = padding_of(lengths, batches),
                     .largest = largest_of(batches)};
  check_inputs(epoch, report.largest);
  for (const BatchShape& batch : batches) report.samples += batch.samples;
  const std::vector<BatchShape> alone(2 * micros, report.largest);
  report.largest_alone = epoch.play(alone, unlimited_memory()).reserved.largest;
  report.run = epoch.play(batches, epoch.memory(), asked.empty_cache_every);
  if (report.run.ended)
    report.without_limit = epoch.play(batches, unlimited_memory(), asked.empty_cache_every);
  if (changes == EpochChanges::tried) report.changes = Changes(epoch, options, asked, lengths).all(batches);
  return report;
}

Estimate estimate_epoch(const Model& model, const RunOptions& options, const EpochOptions& asked,
                        WorkspacePlanners& planners, StepsToRun steps, EpochChanges changes) {
  EpochReport epoch = run_epoch(model, options, asked, planners, changes);
  Estimate result = estimate(model, with_shape(options, epoch.largest), planners, nullptr, steps);
  result.report.fix = fix_of(epoch);
  result.report.epoch = std::move(epoch);
  return result;
}

}  // namespace metaprof
