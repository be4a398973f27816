#include <fmt/format.h>

#include "core/append.h"
#include "core/shown_text.h"
#include "meta/trace/text.h"
#include "meta/trace/text_context.h"

namespace metaprof {
namespace {

bool is_bare(std::string_view word) {
  for (const char c : word)
    if (c == ' ' || c == '"' || c == '\\') return false;
  return !word.empty() && !word.starts_with("//") && shown(word) == word;
}

// Bytes of a word with characters that a terminal would obey stand as \xHH.
std::string in_quotes(std::string_view word) {
  if (is_bare(word)) return std::string(word);
  const bool plain = shown(word) == word;
  std::string text = "\"";
  for (const char c : word) {
    switch (c) {
      case '"': text += "\\\""; break;
      case '\\': text += "\\\\"; break;
      case '\n': text += "\\n"; break;
      case '\t': text += "\\t"; break;
      case '\r': text += "\\r"; break;
      default:
        if (plain || (c >= ' ' && c < 0x7f))
          text += c;
        else
          text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text + '"';
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  std::string write() {
    for (const ParameterRecord& parameter : trace_.parameters) write_parameter(parameter);
    for (const Event& event : trace_.events) write_event(event);
    declare_storages(trace_.storages.size());
    declare_nodes(trace_.nodes.size());
    for (const uint32_t loss : trace_.losses)
      line("loss {}", loss == 0 ? std::string("0") : node_name(loss - 1));
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    append(out_, format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  std::string text(uint32_t index) const { return in_quotes(trace_.text(index)); }
  std::string node_name(uint32_t index) const {
    return fmt::format("{}#{}", text(trace_.nodes[index].name), index + 1);
  }

  std::string tensor(const TensorRecord& t) const {
    if (t.storage == 0 && t.dims == 0) return "None";
    return fmt::format("{}{}{}@{}{}", short_name(t.dtype), to_string(trace_.shape(t)),
                       t.requires_grad ? "g" : "", t.on_host ? "h" : "", t.storage);
  }

  void write_parameter(const ParameterRecord& parameter) {
    std::string names;
    for (size_t i = 1; i < parameter.names.size(); ++i) names += " = " + in_quotes(parameter.names[i]);
    line("{} {} {}{}{}@{}{}", parameter.buffer ? "buffer" : "parameter", in_quotes(parameter.names.at(0)),
         short_name(parameter.dtype), to_string(SizesView(parameter.sizes)),
         parameter.requires_grad ? "g" : "", parameter.storage, names);
  }

  void write_storage(std::string_view word, uint32_t id, std::string_view stream) {
    const StorageRecord& storage = trace_.storages[id];
    std::string more;
    if (storage.device != kFirstGpu) more += " device=" + to_string(storage.device);
    if (storage.call != context_.call()) more += fmt::format(" call={}", storage.call);
    if (storage.module != context_.module()) more += " module=" + text(storage.module);
    if (storage.name != 0) more += " name=" + text(storage.name);
    if (storage.estimated) more += " estimated";
    line("{} {} {} {}{}{}", word, id, storage.bytes.count, to_string(storage.category), stream, more);
  }

  // Storages without an event are written before the next line that could speak of them.
  void declare_storages(size_t end) {
    while (next_storage_ < end) write_storage("storage", next_storage_++, "");
  }

  void declare_nodes(size_t end) {
    for (; next_node_ < end; ++next_node_) {
      const NodeRecord& node = trace_.nodes[next_node_];
      std::string more;
      if (node.module != context_.module()) more += " module=" + text(node.module);
      if (node.call != context_.call()) more += fmt::format(" call={}", node.call);
      if (node.sequence != 0) more += fmt::format(" seq={}", node.sequence);
      if (node.inner != 0) more += fmt::format(" inner={}", node.inner);
      if (node.edge_count > 0) more += " ->";
      for (uint32_t i = 0; i < node.edge_count; ++i) {
        const uint32_t next = trace_.edges[node.first_edge + i];
        more += next == 0 ? " 0" : fmt::format(" #{}", next);
      }
      line("node #{} {}{}", next_node_ + 1, text(node.name), more);
    }
  }

  void write_call(uint32_t index) {
    const CallRecord& call = trace_.calls[index];
    std::string more;
    for (uint32_t i = 0; i < call.inputs; ++i) {
      const TensorRecord& input = trace_.tensors[call.first_tensor + i];
      declare_storages(input.storage + size_t{1});
      more += " " + tensor(input);
    }
    if (call.module != context_.module()) more += " module=" + text(call.module);
    if (call.phase != context_.phase) more += fmt::format(" phase={}", to_string(call.phase));
    if (call.node != context_.node()) more += fmt::format(" node={}", call.node);
    if (call.depth != context_.depth()) more += fmt::format(" depth={}", call.depth);
    if (call.composite) more += " composite";
    if (call.unmodelled) more += " unmodelled";
    if (call.assumed) more += " assumed";
    if (call.kernel != Kernel::other) more += fmt::format(" kernel={}", to_string(call.kernel));
    line("> {}{}", text(call.op), more);
    context_.push(TextContext::Kind::call, index, call.module);
  }

  void write_end(uint32_t index) {
    const TextContext::Open* frame = context_.innermost_frame();
    if (!frame || frame->kind == TextContext::Kind::node) {
      line("<");
    } else {
      const CallRecord& call = trace_.calls[index];
      std::string more;
      for (uint32_t i = 0; i < call.outputs; ++i) {
        const TensorRecord& output = trace_.tensors[call.first_tensor + call.inputs + i];
        declare_storages(output.storage + size_t{1});
        more += " " + tensor(output);
      }
      if (call.counted.count != 0) more += fmt::format(" counted={}", call.counted.count);
      if (call.own.count != 0) more += fmt::format(" own={}", call.own.count);
      if (call.moved.count != 0) more += fmt::format(" moved={}", call.moved.count);
      line("<{}", more);
    }
    context_.pop_frame();
  }

  void write_phase(const Event& event) {
    context_.phase = static_cast<Phase>(event.detail);
    if (context_.phase == Phase::setup && event.id == 0 && event.value < 0)
      line("# phase setup");
    else if (event.value < 0)
      line("# phase {} step {}", to_string(context_.phase), event.id);
    else
      line("# phase {} step {} micro {}", to_string(context_.phase), event.id, event.value);
  }

  void write_module(std::string_view word, uint32_t path) {
    if (path == 0)
      line("# {}", word);
    else
      line("# {} {}", word, text(path));
  }

  void write_event(const Event& event) {
    switch (event.kind) {
      case Event::Kind::call: return write_call(event.id);
      case Event::Kind::end: return write_end(event.id);
      case Event::Kind::node:
        declare_nodes(event.id + size_t{1});
        line("> evaluate {}", node_name(event.id));
        return context_.push(TextContext::Kind::node, event.id, trace_.nodes[event.id].module);
      case Event::Kind::alloc:
        declare_storages(event.id);
        next_storage_ = event.id + 1;
        return write_storage("+", event.id, event.stream == 0 ? "" : fmt::format(" s{}", event.stream));
      case Event::Kind::free: return line("- {}", event.id);
      case Event::Kind::save:
      case Event::Kind::release:
        declare_storages(event.id + size_t{1});
        declare_nodes(static_cast<size_t>(event.value) + 1);
        return line("{} {} {}", event.kind == Event::Kind::save ? "save" : "release", event.id,
                    node_name(static_cast<uint32_t>(event.value)));
      case Event::Kind::category:
        declare_storages(event.id + size_t{1});
        return line("category {} {}", event.id, to_string(static_cast<Category>(event.detail)));
      case Event::Kind::phase: return write_phase(event);
      case Event::Kind::pause: return line("# pause");
      case Event::Kind::enter:
        write_module("enter", event.id);
        return context_.push(TextContext::Kind::module, event.id, event.id);
      case Event::Kind::leave: write_module("leave", event.id); return context_.pop_module();
      case Event::Kind::wait: return line("wait {} {}", event.stream, event.id);
      case Event::Kind::record_stream: return line("record_stream {} {}", event.id, event.stream);
    }
  }

  const Trace& trace_;
  TextContext context_;
  std::string out_;
  uint32_t next_storage_ = 1;
  uint32_t next_node_ = 0;
};

}  // namespace

std::string to_text(const Trace& trace) { return Writer(trace).write(); }

std::optional<Category> category_named(std::string_view name) {
  for (int i = 0; i < kCategories; ++i)
    if (to_string(static_cast<Category>(i)) == name) return static_cast<Category>(i);
  return std::nullopt;
}

std::optional<Phase> phase_named(std::string_view name) {
  for (int i = 0; i < kPhases; ++i)
    if (to_string(static_cast<Phase>(i)) == name) return static_cast<Phase>(i);
  return std::nullopt;
}

}  // namespace metaprof
