#include "validation/cases/repeat_case.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/all.h"
#include "meta/ops/rules/library.h"
#include "meta/platform/platform.h"
#include "validation/cases/case_tensors.h"
#include "validation/cases/reasons.h"
#include "validation/cases/recorded_calls.h"
#include "validation/cases/saved_comparison.h"
#include "validation/comparison/memory_events.h"

namespace metaprof {

namespace {

using What = CaseDifference::What;

constexpr int kMostChoices = 16;

bool any_tensor(const std::vector<RecordedValue>& values, bool (*test)(const RecordedTensor&)) {
  bool found = false;
  for (const RecordedValue& value : values)
    for_each_tensor(value, [&](const RecordedTensor& tensor) { found |= test(tensor); });
  return found;
}

bool writes_leaf(const Operator& op, const std::vector<Value>& arguments) {
  const auto is_leaf = [](const Tensor& tensor) {
    return tensor.defined() && tensor->requires_grad && !tensor->grad_fn;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!op.schema.arguments[i].written) continue;
    if (arguments[i].is_tensor() && is_leaf(arguments[i].tensor())) return true;
    if (arguments[i].is_tensors())
      for (const Tensor& tensor : arguments[i].tensors())
        if (is_leaf(tensor)) return true;
  }
  return false;
}

// The recording does not say in which mode a call was made. It was without grad if a leaf was written, or if
// something that requires grad went in and nothing came out that does although it could. Of sparse tensors a recording
// does not say whether they do.
bool was_without_grad(const Operator& op, const std::vector<Value>& arguments,
                      const std::vector<RecordedValue>& inputs, const std::vector<RecordedValue>& outputs) {
  if (writes_leaf(op, arguments)) return true;
  const auto requires_grad = [](const RecordedTensor& t) { return t.requires_grad; };
  const auto is_number = [](const RecordedTensor& t) {
    return is_differentiable(t.dtype) && t.parts.empty();
  };
  if (!any_tensor(inputs, requires_grad)) return false;
  return any_tensor(outputs, is_number) && !any_tensor(outputs, requires_grad);
}

std::vector<MemoryEvent> recorded_events(std::span<const LogLine> lines) {
  std::vector<MemoryEvent> events;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind == LogLine::Kind::request)
      events.push_back({MemoryEvent::Kind::request, lines[i].block, lines[i].bytes, i});
    if (lines[i].kind == LogLine::Kind::give_back)
      events.push_back({MemoryEvent::Kind::give_back, lines[i].block, 0, i});
  }
  return events;
}

// "+ 3 25165824 in aten::linear > aten::addmm (line 7)"
std::string show_recorded(std::span<const MemoryEvent> events, size_t index, std::span<const LogLine> lines) {
  if (index >= events.size()) return "the end";
  const MemoryEvent& event = events[index];
  AtWork at_work;
  for (const LogLine& line : lines.first(event.source)) at_work.pass(line);
  const bool request = event.kind == MemoryEvent::Kind::request;
  return fmt::format("{} {}{}{} (line {})", request ? "+" : "-", event.storage,
                     request ? fmt::format(" {}", event.bytes) : "", at_work.text(),
                     lines[event.source].number);
}

std::string show_traced(std::span<const MemoryEvent> events, size_t index, const Trace& trace, size_t from,
                        const StorageMap& known) {
  if (index >= events.size()) return "the end";
  const MemoryEvent& event = events[index];
  const int64_t recorded = known.recorded(static_cast<uint32_t>(event.storage));
  const std::string text = event.kind == MemoryEvent::Kind::request ? fmt::format("+ {}", event.bytes)
                           : recorded                               ? fmt::format("- {}", recorded)
                                      : fmt::format("- a block of {} bytes", event.bytes);
  return text + at_work(trace, from, event.source).text();
}

// Sizes that follow from data are what the recording says, as they are what a program says. Of a sparse tensor those of
// its values.
Sizes first_sizes(std::span<const RecordedValue> outputs) {
  Sizes sizes;
  if (!outputs.empty())
    for_each_tensor(outputs[0], [&](const RecordedTensor& tensor) {
      if (sizes.empty()) sizes = tensor.parts.empty() ? tensor.sizes : tensor.parts.back().sizes;
    });
  return sizes;
}

class Repetition {
 public:
  Repetition(const RecordedCase& recorded, FrameworkVersion framework, CaseResult& result, int choice)
      : case_(recorded),
        result_(result),
        steps_(recorded_steps(recorded.forward)),
        readable_(recorded.forward.size()),
        session_(make_session(with_framework(platform_named(recorded.device), framework))),
        tensors_(recorded, *session_, choice) {
    allow_attention();
    if (recorded.reads_device_memory) readable_ = first_reading_line(recorded.forward);
  }

  void run() {
    warm_up();
    tensors_.make_inputs();
    StorageMap events = tensors_.map();
    const bool finished = run_forward();
    tensors_.release_unused();
    compare_forward(events);
    result_.cut_short = reads_in_forward() && session_->device.is_cuda();
    if (!finished || reads_in_forward()) return;
    compare_outputs();
    if (!case_.has_nodes && !case_.has_backward) return;
    if (!case_.roots.empty()) compare_saved();
    if (case_.has_backward) run_backward(events);
  }

  int ambiguous() const { return tensors_.ambiguous(); }

 private:
  bool reads_in_forward() const { return readable_ < case_.forward.size(); }

  void differ(What what, std::string expected, std::string got, int64_t bytes = 0) {
    result_.differences.push_back({what, std::move(expected), std::move(got), bytes});
  }

  void allow_attention() {
    const std::string_view only = case_.attention;
    if (only.empty()) return;
    Modes& modes = session_->modes;
    modes.flash_attention = only == "flash";
    modes.efficient_attention = only == "efficient";
    modes.math_attention = only == "math";
    modes.cudnn_attention = only == "cudnn";
  }

  // The recorder made the libraries take their workspaces, on the calling and on the engine's thread.
  void warm_up() {
    if (session_->device.is_cuda()) take_library_workspaces(*session_);
  }

  // False if the program's operators failed; what came before is compared nevertheless.
  bool run_forward() {
    forward_from_ = session_->trace.events.size();
    const std::optional<DType> lower = autocast_dtype(case_, steps_);
    std::optional<AutocastRegion> region;
    if (lower) region.emplace(*session_, true, *lower);
    for (const RecordedStep& step : steps_) {
      if (!step.call) {
        tensors_.release(case_.forward[step.begin].block);
        continue;
      }
      const bool reading = step.begin <= readable_ && readable_ < step.end;
      try {
        run_call(step, lower.has_value());
      } catch (const Error& error) {
        if (!reading) result_.forward_error = error.what();
        return false;
      }
      if (reading) break;
    }
    region.reset();
    return true;
  }

  void run_call(const RecordedStep& step, bool under_autocast) {
    const LogLine& line = case_.forward[step.begin];
    const Operator& op = *session_->registry.find(line.name);
    const std::vector<RecordedValue> inputs = parse_values(line.text);
    const std::vector<RecordedValue> outputs = parse_values(case_.forward[step.end].text);
    std::vector<Value> arguments = tensors_.arguments(op, inputs);
    // Operators that autocast would cast, but that were not, ran where it was switched off.
    const bool casts = op.record.facts.autocast == Autocast::none || step.autocast;
    Scoped<bool> autocast(session_->modes.autocast, under_autocast && casts);
    Scoped<bool> grad(session_->modes.grad, !was_without_grad(op, arguments, inputs, outputs));
    const Sizes told = op.record.facts.reads_data ? first_sizes(outputs) : Sizes();
    const Scoped<SizesByData> by_data(session_->sizes_by_data, {told, false});
    Results results = invoke(*session_, op, arguments);
    arguments.clear();
    tensors_.bind(results.list(), outputs);
  }

  void compare_forward(StorageMap& events) {
    if (!result_.forward_error.empty() || !session_->device.is_cuda()) return;
    const std::span<const LogLine> lines = std::span(case_.forward).first(readable_);
    compare_memory(What::forward_events, lines, forward_from_, session_->trace.events.size(), events,
                   reads_in_forward());
  }

  void compare_memory(What what, std::span<const LogLine> lines, size_t from, size_t to, StorageMap& known,
                      bool prefix) {
    const auto expected = recorded_events(lines);
    const auto got = traced_events(session_->trace, from, to, session_->device, tensors_.hidden());
    if (auto difference = compare_events(expected, got, known, prefix))
      differ(what, show_recorded(expected, difference->recorded, lines),
             show_traced(got, difference->ours, session_->trace, from, known),
             requested_bytes(got) - requested_bytes(expected));
  }

  void compare_outputs() {
    for (size_t i = 0; i < case_.outputs.size(); ++i) {
      const NamedTensor& output = case_.outputs[i];
      if (output.value.kind != RecordedValue::Kind::tensor) continue;
      const RecordedTensor& expected = output.value.tensor[0];
      const Tensor& got = tensors_.outputs()[i];
      const bool both = !expected.parts.empty() || expected.requires_grad == got.requires_grad();
      if (!both || !same_tensor(expected, got, tensors_.map()))
        differ(What::outputs, output.name + " " + show(expected),
               output.name + " " + show(got, tensors_.map()));
    }
  }

  void compare_saved() {
    for (SavedDifference& difference : compare_graphs(case_, tensors_.outputs(), tensors_.map()))
      differ(What::saved, std::move(difference.expected), std::move(difference.got));
  }

  void run_backward(StorageMap& events) {
    std::vector<Tensor> roots, gradients;
    for (const NamedTensor& incoming : case_.incoming) {
      const auto output = std::find_if(case_.outputs.begin(), case_.outputs.end(),
                                       [&](const NamedTensor& o) { return o.name == incoming.name; });
      if (output == case_.outputs.end() || incoming.value.kind != RecordedValue::Kind::tensor) continue;
      roots.push_back(tensors_.outputs()[size_t(output - case_.outputs.begin())]);
      gradients.push_back(tensors_.make(incoming.value.tensor[0]));
    }
    tensors_.map().merge_into(events);
    const size_t from = session_->trace.events.size();
    size_t readable = case_.backward.size();
    if (case_.reads_device_memory) readable = first_reading_line(case_.backward);
    const bool prefix = readable < case_.backward.size();
    result_.cut_short |= prefix && session_->device.is_cuda();
    try {
      backward(*session_, roots, gradients);
    } catch (const Error& error) {
      if (!prefix) result_.backward_error = error.what();
      return;
    }
    if (session_->device.is_cuda())
      compare_memory(What::backward_events, std::span(case_.backward).first(readable), from,
                     session_->trace.events.size(), events, prefix);
    if (!prefix) compare_gradients(events);
  }

  // `events` knows the blocks that backward made.
  void compare_gradients(const StorageMap& events) {
    for (const NamedTensor& gradient : case_.gradients) {
      const Tensor got = tensors_.input(gradient.name).grad();
      const bool expected = gradient.value.kind == RecordedValue::Kind::tensor;
      if (expected ? same_tensor(gradient.value.tensor[0], got, tensors_.map()) : !got.defined()) continue;
      differ(What::grads, gradient.name + " " + show(gradient.value),
             gradient.name + " " + show(got, events));
    }
  }

  const RecordedCase& case_;
  CaseResult& result_;
  std::vector<RecordedStep> steps_;
  size_t readable_;  // index of the forward's first line that does not count any more
  std::unique_ptr<Session> session_;
  CaseTensors tensors_;
  size_t forward_from_ = 0;
};

std::string operator_part(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == name.npos) return name;
  return name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
}

void add_missing(CaseResult& result, std::string what) {
  if (std::find(result.missing.begin(), result.missing.end(), what) == result.missing.end())
    result.missing.push_back(std::move(what));
}

// What keeps the case from being repeated: operators without a record, layouts that tensors do not have, and views of leaves
// that were made before the recording began, to which a node of it leads nowhere.
void find_missing(const RecordedCase& recorded, const Registry& registry, CaseResult& result) {
  for (const RecordedNode& node : recorded.nodes)
    if (!node.edges.empty() &&
        std::ranges::all_of(node.edges, [](const std::string& edge) { return edge == "None"; }))
      add_missing(result, "the way from " + node.name + " to its inputs");
  for (const RecordedStep& step : recorded_steps(recorded.forward)) {
    if (!step.call) continue;
    const std::string_view name = recorded.forward[step.begin].name;
    if (!registry.find(name)) add_missing(result, std::string(name));
    for (const RecordedValue& value : parse_values(recorded.forward[step.begin].text)) {
      if (value.kind == RecordedValue::Kind::other) add_missing(result, "value " + value.text);
      for_each_tensor(value, [&](const RecordedTensor& tensor) {
        if (!tensor.layout.empty() && tensor.layout != "sparse")
          add_missing(result, "layout " + tensor.layout);
      });
    }
  }
}

}  // namespace

CaseResult repeat_case(const RecordedCase& recorded, FrameworkVersion framework) {
  CaseResult result;
  result.name = recorded.name;
  result.device = recorded.device;
  result.op = operator_part(recorded.name);
  if (!find_hardware(recorded.device))
    fail("{}:{}: there is no device profile '{}'", recorded.file, recorded.line, recorded.device);
  for (const NamedTensor& gradient : recorded.gradients)
    if (std::ranges::none_of(recorded.inputs, [&](const NamedTensor& i) {
          return i.name == gradient.name && i.value.kind == RecordedValue::Kind::tensor;
        }))
      fail("{}:{}: '{}' has a gradient, but is no tensor that the case takes", recorded.file, recorded.line,
           gradient.name);
  find_missing(recorded, registry_for(framework), result);
  if (!result.claimed()) return result;
  Repetition first(recorded, framework, result, 0);
  first.run();
  // Where an argument can be more than one tensor, the one that gives the recorded graph is meant.
  std::vector<int> choices;
  if (first.ambiguous() > 0) choices.push_back(CaseTensors::kInOrder);
  for (int choice = 1; choice <= std::min(first.ambiguous(), kMostChoices); ++choice)
    choices.push_back(choice);
  for (int choice : choices) {
    if (result.equal(What::saved)) break;
    CaseResult other{.name = result.name, .device = result.device, .op = result.op};
    Repetition(recorded, framework, other, choice).run();
    if (other.equal(What::saved)) result = std::move(other);
  }
  if (const KnownDifference* known = result.all_equal() ? nullptr : reason_for(result))
    result.reason = known->reason;
  return result;
}

// Errors name the place of the case, which what is read in it does not know.
CaseResult repeat_at_its_place(const RecordedCase& recorded, FrameworkVersion framework) {
  try {
    return repeat_case(recorded, framework);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.starts_with(recorded.file + ":")) throw;
    fail("{}:{}: {}", recorded.file, recorded.line, message);
  }
}

CaseSummary repeat_cases(const CaseSelection& selection) {
  CaseSummary summary;
  for (const std::string& path : selection.logs) {
    CaseLog log(path);
    RecordedCase recorded;
    while (log.next(recorded))
      if (fnmatch(selection.only.c_str(), recorded.name.c_str(), 0) == 0)
        summary.add(repeat_at_its_place(recorded, selection.framework));
  }
  if (summary.totals.total + summary.totals.cut_short == 0)
    fail("no recorded case is named like '{}'", selection.only);
  return summary;
}

}  // namespace metaprof
