#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "meta/trace/text.h"
#include "meta/trace/text_context.h"
#include "meta/trace/text_words.h"

namespace metaprof {
namespace {

constexpr int64_t kMostStreams = std::numeric_limits<uint16_t>::max();

class Parser {
 public:
  explicit Parser(std::string_view origin) { line_.origin = origin; }

  Trace parse(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_.number;
      line_.split(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line_.words.empty()) parse_line();
    }
    check_references();
    return std::move(trace_);
  }

 private:
  // A mention of something that a later line may define.
  struct Reference {
    uint32_t number;
    int line;
  };
  struct OpenCall {
    std::vector<TensorRecord> inputs;
  };

  void parse_line() {
    const std::string& first = line_.words[0];
    if (first == "parameter" || first == "buffer") return parse_parameter(first == "buffer");
    if (first == "#") return parse_mark();
    if (first == "+") return parse_alloc();
    if (first == "storage") return parse_storage();
    if (first == "-") return parse_free();
    if (first == ">")
      return line_.words.size() > 1 && line_.words[1] == "evaluate" ? parse_evaluate() : parse_call();
    if (first == "<") return parse_end();
    if (first == "node") return parse_node();
    if (first == "save") return parse_save(Event::Kind::save);
    if (first == "release") return parse_save(Event::Kind::release);
    if (first == "category") return parse_category();
    if (first == "wait") return parse_wait();
    if (first == "record_stream") return parse_record_stream();
    if (first == "loss") return parse_loss();
    line_.expected(
        "parameter, buffer, '# phase', '# enter', '# leave', +, -, storage, >, <, node, save, release, "
        "category, "
        "wait, record_stream or loss",
        0);
  }

  uint32_t storage(size_t at) { return known_storage(line_.integer(at, "the number of a storage", 1)); }
  uint32_t known_storage(int64_t number) {
    if (number >= static_cast<int64_t>(trace_.storages.size()))
      line_.wrong(fmt::format("storage {} does not exist yet; the last one is {}", number,
                              trace_.storages.size() - 1));
    return static_cast<uint32_t>(number);
  }
  int64_t bytes(size_t at) { return line_.integer(at, "a number of bytes"); }
  uint16_t stream(size_t at) {
    return static_cast<uint16_t>(small(line_.integer(at, "the number of a stream"), kMostStreams, at));
  }
  int64_t small(int64_t value, int64_t most, size_t at) {
    if (value > most) line_.expected(fmt::format("a number up to {}", most), at);
    return value;
  }
  uint32_t index32(int64_t value, size_t at) {
    return static_cast<uint32_t>(small(value, std::numeric_limits<uint32_t>::max(), at));
  }

  // "#12" or "NAME#12"; the number, from 1.
  uint32_t node_number(size_t at) {
    const std::string& word = line_.word(at, "a node as NAME#NUMBER");
    const size_t sign = word.rfind('#');
    if (sign == std::string::npos) line_.expected("a node as NAME#NUMBER", at);
    return index32(line_.integer_in(std::string_view(word).substr(sign + 1), at, "a node as NAME#NUMBER", 1),
                   at);
  }
  uint32_t known_node(size_t at) {
    const uint32_t number = node_number(at);
    if (number > trace_.nodes.size())
      line_.wrong(
          fmt::format("node #{} does not exist yet; a line 'node #{} NAME' must come first", number, number));
    const std::string& word = line_.words[at];
    const std::string_view name = std::string_view(word).substr(0, word.rfind('#'));
    const std::string_view known = trace_.text(trace_.nodes[number - 1].name);
    if (!name.empty() && name != known) line_.expected(fmt::format("{}#{}", known, number), at);
    return number - 1;
  }

  // The value of a word KEY=VALUE, or null.
  static const char* value_of(const std::string& word, std::string_view key) {
    return word.size() > key.size() && word.starts_with(key) && word[key.size()] == '='
               ? word.c_str() + key.size() + 1
               : nullptr;
  }

  TensorRecord tensor(size_t at, bool later_storage) {
    constexpr std::string_view what = "a tensor as DTYPE[SIZES]@STORAGE or None";
    TensorRecord record;
    std::string_view rest = line_.word(at, what);
    if (rest == "None") return record;
    const size_t open = rest.find('['), close = rest.find(']'), sign = rest.find('@');
    if (open == rest.npos || close == rest.npos || sign == rest.npos || !(open < close && close < sign))
      line_.expected(what, at);
    const auto dtype = dtype_named(rest.substr(0, open));
    if (!dtype) line_.expected("a dtype before '['", at);
    record.dtype = *dtype;
    record.shape = static_cast<uint32_t>(trace_.numbers.size());
    read_sizes(rest.substr(open + 1, close - open - 1), at, record);
    const std::string_view mark = rest.substr(close + 1, sign - close - 1);
    if (!mark.empty() && mark != "g") line_.expected("'g' or nothing before '@'", at);
    record.requires_grad = !mark.empty();
    rest.remove_prefix(sign + 1);
    if (rest.starts_with("h")) {
      record.on_host = true;
      rest.remove_prefix(1);
    }
    record.storage = index32(line_.integer_in(rest, at, "the number of a storage after '@'"), at);
    if (later_storage)
      storage_references_.push_back({record.storage, line_.number});
    else
      known_storage(record.storage);
    return record;
  }

  void read_sizes(std::string_view sizes, size_t at, TensorRecord& record) {
    while (!sizes.empty()) {
      const size_t comma = std::min(sizes.find(','), sizes.size());
      trace_.numbers.push_back(line_.integer_in(sizes.substr(0, comma), at, "sizes as [2,3]"));
      if (++record.dims == 0) line_.expected("at most 255 sizes", at);
      if (comma + 1 == sizes.size()) line_.expected("sizes as [2,3]", at);
      sizes.remove_prefix(std::min(comma + 1, sizes.size()));
    }
  }

  void parse_parameter(bool buffer) {
    ParameterRecord parameter;
    parameter.buffer = buffer;
    parameter.names.push_back(line_.word(1, "a name"));
    const TensorRecord record = tensor(2, true);
    const SizesView shape = trace_.shape(record);
    parameter.sizes = Sizes(shape.begin(), shape.end());
    parameter.dtype = record.dtype;
    parameter.requires_grad = record.requires_grad;
    parameter.storage = record.storage;
    size_t at = 3;
    for (; at < line_.words.size() && line_.words[at] == "="; at += 2)
      parameter.names.push_back(line_.word(at + 1, "a name after '='"));
    line_.end(at);
    trace_.parameters.push_back(std::move(parameter));
  }

  void parse_mark() {
    const std::string& word = line_.word(1, "phase, pause, enter or leave");
    if (word == "phase") return parse_phase();
    if (word == "pause") {
      line_.end(2);
      return trace_.add({.kind = Event::Kind::pause});
    }
    if (word != "enter" && word != "leave") line_.expected("phase, pause, enter or leave", 1);
    const uint32_t path = line_.words.size() > 2 ? trace_.intern(line_.words[2]) : 0;
    line_.end(3);
    if (word == "enter") {
      trace_.add({.kind = Event::Kind::enter, .id = path});
      return context_.push(TextContext::Kind::module, path, path);
    }
    const TextContext::Open* open = context_.innermost_module();
    if (!open || open->index != path)
      line_.wrong(fmt::format("'# leave {}' without its '# enter'; {}", trace_.text(path),
                              open
                                  ? fmt::format("the last one that is open is '{}'", trace_.text(open->index))
                                  : "none is open"));
    trace_.add({.kind = Event::Kind::leave, .id = path});
    context_.pop_module();
  }

  void parse_phase() {
    const auto phase = phase_named(line_.word(2, "the name of a phase"));
    if (!phase) line_.expected("setup, forward, backward, recompute, optimizer or zero_grad", 2);
    Event event{.kind = Event::Kind::phase, .detail = static_cast<uint8_t>(*phase), .value = -1};
    size_t at = 3;
    if (*phase != Phase::setup || line_.words.size() > 3) {
      if (line_.word(at, "'step' and its number") != "step") line_.expected("'step' and its number", at);
      event.id = index32(line_.integer(at + 1, "the number of a step"), at + 1);
      at += 2;
    }
    if (line_.words.size() > at) {
      if (line_.words[at] != "micro") line_.expected("'micro' and its number, or the end of the line", at);
      event.value = line_.integer(at + 1, "the number of a micro-batch");
      at += 2;
    }
    line_.end(at);
    context_.phase = *phase;
    trace_.add(event);
  }

  // NUMBER BYTES CATEGORY [sSTREAM] [KEY=VALUE …] of a new storage; returns its stream.
  uint16_t new_storage() {
    const int64_t number = line_.integer(1, "the number of a storage", 1);
    if (number != static_cast<int64_t>(trace_.storages.size()))
      line_.expected(fmt::format("{}, the number of the next storage", trace_.storages.size()), 1);
    StorageRecord record;
    record.bytes = {bytes(2)};
    const auto category = category_named(line_.word(3, "a category"));
    if (!category)
      line_.expected(
          "parameter, buffer, input, activation, gradient, optimizer_state, temporary, workspace, "
          "cached_copy or kept",
          3);
    record.category = *category;
    record.device = kFirstGpu;
    record.call = context_.call();
    record.module = context_.module();
    uint16_t on_stream = 0;
    for (size_t at = 4; at < line_.words.size(); ++at) {
      const std::string& word = line_.words[at];
      if (const char* value = value_of(word, "call"))
        record.call = known_call(value, at);
      else if (const char* value = value_of(word, "module"))
        record.module = trace_.intern(value);
      else if (const char* value = value_of(word, "name"))
        record.name = trace_.intern(value);
      else if (word == "estimated")
        record.estimated = true;
      else if (const char* value = value_of(word, "device"))
        record.device = device(value, at);
      else if (word.size() > 1 && word[0] == 's')
        on_stream = static_cast<uint16_t>(small(
            line_.integer_in(std::string_view(word).substr(1), at, "a stream as s1"), kMostStreams, at));
      else
        line_.expected("a stream as s1, call=, module=, name=, device= or estimated", at);
    }
    trace_.storages.push_back(record);
    return on_stream;
  }

  // A node is made, and keeps its inputs, before its operator's line.
  uint32_t later_call(std::string_view value, size_t at) {
    const uint32_t number = index32(line_.integer_in(value, at, "the number of a call"), at);
    call_references_.push_back({number, line_.number});
    return number;
  }

  uint32_t known_call(std::string_view value, size_t at) {
    const int64_t number = line_.integer_in(value, at, "the number of an earlier call");
    if (number > static_cast<int64_t>(trace_.calls.size()))
      line_.expected("the number of an earlier call", at);
    return static_cast<uint32_t>(number);
  }

  Device device(std::string_view value, size_t at) {
    if (value == "cpu") return kHost;
    if (!value.starts_with("cuda:")) line_.expected("device=cpu or device=cuda:N", at);
    value.remove_prefix(5);
    return {DeviceType::cuda,
            static_cast<int8_t>(small(line_.integer_in(value, at, "device=cuda:N"), 127, at))};
  }

  void parse_alloc() {
    const uint16_t on_stream = new_storage();
    const auto id = static_cast<uint32_t>(trace_.storages.size() - 1);
    const StorageRecord& record = trace_.storages.back();
    trace_.add({.kind = Event::Kind::alloc,
                .detail = static_cast<uint8_t>(record.category),
                .stream = on_stream,
                .id = id,
                .value = record.bytes.count});
    alive_.resize(trace_.storages.size());
    alive_[id] = true;
  }

  void parse_storage() {
    if (new_storage() != 0) line_.wrong("a storage without an event has no stream");
  }

  void parse_free() {
    const uint32_t id = storage(1);
    line_.end(2);
    if (id >= alive_.size() || !alive_[id])
      line_.wrong(fmt::format("storage {} is freed, but it is not alive here", id));
    alive_[id] = false;
    trace_.add({.kind = Event::Kind::free, .id = id});
  }

  void parse_call() {
    CallRecord call;
    call.op = trace_.intern(line_.word(1, "an operator or 'evaluate'"));
    call.module = context_.module();
    call.phase = context_.phase;
    call.depth = context_.depth();
    call.node = context_.node();
    OpenCall open;
    size_t at = 2;
    for (; at < line_.words.size() && is_tensor(line_.words[at]); ++at)
      open.inputs.push_back(tensor(at, false));
    for (; at < line_.words.size(); ++at) read_call_word(call, at);
    if (open.inputs.size() > std::numeric_limits<uint16_t>::max()) line_.wrong("more than 65535 tensors");
    call.inputs = static_cast<uint16_t>(open.inputs.size());
    const auto index = static_cast<uint32_t>(trace_.calls.size());
    trace_.calls.push_back(call);
    trace_.add({.kind = Event::Kind::call, .id = index});
    context_.push(TextContext::Kind::call, index, call.module);
    open_calls_.push_back(std::move(open));
  }

  static bool is_tensor(const std::string& word) {
    return word == "None" || (word.find('[') != word.npos && word.find('=') == word.npos);
  }

  void read_call_word(CallRecord& call, size_t at) {
    const std::string& word = line_.words[at];
    if (word == "composite") {
      call.composite = true;
    } else if (word == "unmodelled") {
      call.unmodelled = true;
    } else if (word == "assumed") {
      call.assumed = true;
    } else if (const char* value = value_of(word, "kernel")) {
      const auto kernel = kernel_named(value);
      if (!kernel) line_.expected("kernel= and other, cudnn, attention or depthwise", at);
      call.kernel = *kernel;
    } else if (const char* value = value_of(word, "module")) {
      call.module = trace_.intern(value);
    } else if (const char* value = value_of(word, "phase")) {
      const auto phase = phase_named(value);
      if (!phase) line_.expected("phase= and the name of a phase", at);
      call.phase = *phase;
    } else if (const char* value = value_of(word, "node")) {
      const int64_t node = line_.integer_in(value, at, "node= and the number of a node");
      if (node > static_cast<int64_t>(trace_.nodes.size()))
        line_.expected("the number of an earlier node", at);
      call.node = static_cast<uint32_t>(node);
    } else if (const char* value = value_of(word, "depth")) {
      call.depth =
          static_cast<uint16_t>(small(line_.integer_in(value, at, "depth= and a number"), 65535, at));
    } else {
      line_.expected("a tensor, module=, phase=, node=, depth=, kernel=, composite, unmodelled or assumed",
                     at);
    }
  }

  void parse_end() {
    const TextContext::Open* frame = context_.innermost_frame();
    if (!frame) line_.wrong("'<' without its '>'");
    const uint32_t index = frame->index;
    if (frame->kind == TextContext::Kind::node) {
      line_.end(1);
    } else {
      end_call(trace_.calls[index]);
    }
    trace_.add({.kind = Event::Kind::end, .id = index});
    context_.pop_frame();
  }

  void end_call(CallRecord& call) {
    call.first_tensor = static_cast<uint32_t>(trace_.tensors.size());
    const auto& inputs = open_calls_.back().inputs;
    trace_.tensors.append(inputs.begin(), inputs.end());
    open_calls_.pop_back();
    for (size_t at = 1; at < line_.words.size(); ++at) {
      const std::string& word = line_.words[at];
      if (const char* value = value_of(word, "counted")) {
        call.counted = {line_.integer_in(value, at, "counted= and a number of FLOPs")};
      } else if (const char* value = value_of(word, "own")) {
        call.own = {line_.integer_in(value, at, "own= and a number of FLOPs", INT64_MIN)};
      } else if (const char* value = value_of(word, "moved")) {
        call.moved = {line_.integer_in(value, at, "moved= and a number of bytes")};
      } else if (is_tensor(word)) {
        if (call.outputs == std::numeric_limits<uint16_t>::max()) line_.wrong("more than 65535 tensors");
        trace_.tensors.push_back(tensor(at, false));
        ++call.outputs;
      } else {
        line_.expected("a tensor, counted=, own= or moved=", at);
      }
    }
  }

  void parse_evaluate() {
    const uint32_t node = known_node(2);
    line_.end(3);
    trace_.add({.kind = Event::Kind::node, .id = node});
    context_.push(TextContext::Kind::node, node, trace_.nodes[node].module);
  }

  uint32_t inner_node(const char* value, size_t at) {
    const uint32_t number = index32(line_.integer_in(value, at, "inner= and the number of a node", 1), at);
    node_references_.push_back({number, line_.number});
    return number;
  }

  void parse_node() {
    const uint32_t number = node_number(1);
    if (number != trace_.nodes.size() + 1)
      line_.expected(fmt::format("#{}, the number of the next node", trace_.nodes.size() + 1), 1);
    NodeRecord node;
    node.name = trace_.intern(line_.word(2, "the name of a node"));
    node.module = context_.module();
    node.call = context_.call();
    node.first_edge = static_cast<uint32_t>(trace_.edges.size());
    size_t at = 3;
    for (; at < line_.words.size() && line_.words[at] != "->"; ++at) {
      const std::string& word = line_.words[at];
      if (const char* value = value_of(word, "module"))
        node.module = trace_.intern(value);
      else if (const char* value = value_of(word, "call"))
        node.call = later_call(value, at);
      else if (const char* value = value_of(word, "seq"))
        node.sequence = line_.unsigned_in(value, at, "seq= and a number");
      else if (const char* value = value_of(word, "inner"))
        node.inner = inner_node(value, at);
      else
        line_.expected("module=, call=, seq=, inner= or '->'", at);
    }
    for (++at; at < line_.words.size(); ++at) {
      const uint32_t next = line_.words[at] == "0" ? 0 : node_number(at);
      node_references_.push_back({next, line_.number});
      trace_.edges.push_back(next);
      if (++node.edge_count == 0) line_.wrong("more than 65535 next nodes");
    }
    trace_.nodes.push_back(node);
  }

  void parse_save(Event::Kind kind) {
    const uint32_t id = storage(1);
    const uint32_t node = known_node(2);
    line_.end(3);
    trace_.add({.kind = kind, .id = id, .value = node});
  }

  void parse_category() {
    const uint32_t id = storage(1);
    const auto category = category_named(line_.word(2, "a category"));
    if (!category) line_.expected("a category", 2);
    line_.end(3);
    trace_.add({.kind = Event::Kind::category, .detail = static_cast<uint8_t>(*category), .id = id});
  }

  void parse_wait() {
    const uint16_t waits = stream(1), waited_for = stream(2);
    line_.end(3);
    trace_.add({.kind = Event::Kind::wait, .stream = waits, .id = waited_for});
  }

  void parse_record_stream() {
    const uint32_t id = storage(1);
    const uint16_t on = stream(2);
    line_.end(3);
    trace_.add({.kind = Event::Kind::record_stream, .stream = on, .id = id});
  }

  void parse_loss() {
    const std::string& word = line_.word(1, "a node as NAME#NUMBER, or 0");
    trace_.losses.push_back(word == "0" ? 0 : known_node(1) + 1);
    line_.end(2);
  }

  void check_references() {
    ++line_.number;
    line_.words.clear();
    if (const TextContext::Open* frame = context_.innermost_frame())
      line_.wrong(
          fmt::format("the text ends, but '> {}' has no '<'",
                      trace_.text(frame->kind == TextContext::Kind::node ? trace_.nodes[frame->index].name
                                                                         : trace_.calls[frame->index].op)));
    for (const Reference& reference : storage_references_) {
      line_.number = reference.line;
      if (reference.number >= trace_.storages.size())
        line_.wrong(fmt::format("storage {} does not exist", reference.number));
    }
    for (const Reference& reference : call_references_) {
      line_.number = reference.line;
      if (reference.number > trace_.calls.size())
        line_.wrong(fmt::format("call {} does not exist", reference.number));
    }
    for (const Reference& reference : node_references_) {
      line_.number = reference.line;
      if (reference.number > trace_.nodes.size())
        line_.wrong(fmt::format("node #{} does not exist", reference.number));
    }
  }

  Trace trace_;
  TextContext context_;
  TextLine line_;
  std::vector<OpenCall> open_calls_;
  std::vector<bool> alive_;
  std::vector<Reference> storage_references_, call_references_, node_references_;
};

}  // namespace

Trace parse_trace(std::string_view text, std::string_view origin) { return Parser(origin).parse(text); }

}  // namespace metaprof
