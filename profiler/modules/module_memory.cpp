#include "profiler/modules/module_memory.h"

#include <algorithm>

#include "meta/trace/module_path.h"
#include "profiler/storages/cursor.h"

namespace metaprof {
namespace {

bool counts(const Trace& trace, Device device, const Event& event) {
  return (event.kind == Event::Kind::alloc || event.kind == Event::Kind::free) &&
         trace.storages[event.id].device == device;
}

// A module's forward that is going on.
struct OpenForward {
  uint32_t path;           // text
  uint32_t first_birth;    // index into the storages born in this pass
  Bytes alive, most;       // of those born within
  uint32_t last_call = 0;  // 1 + index of the last operator that ended within
};

class ForwardWalk {
 public:
  ForwardWalk(const Trace& trace, Device device) : trace_(trace), device_(device) {}

  MemoryByModule walk() {
    const std::span<const Event> events = first_part(trace_, Phase::forward);
    note_last_reads(events);
    for (size_t i = 0; i < events.size(); ++i) pass(events[i], i);
    return std::move(result_);
  }

 private:
  void note_last_reads(std::span<const Event> events) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != Event::Kind::call) continue;
      const CallRecord& call = trace_.calls[events[i].id];
      for (uint32_t k = 0; k < call.inputs; ++k)
        last_read_[trace_.tensors[call.first_tensor + k].storage] = i;
    }
  }

  void pass(const Event& event, size_t at) {
    if (event.kind == Event::Kind::call) frames_.emplace_back(false, event.id);
    if (event.kind == Event::Kind::node) frames_.emplace_back(true, event.id);
    if (event.kind == Event::Kind::end && !frames_.empty()) end_frame();
    if (event.kind == Event::Kind::enter)
      open_.push_back(
          {.path = event.id, .first_birth = static_cast<uint32_t>(born_.size()), .alive = {}, .most = {}});
    if (event.kind == Event::Kind::leave && !open_.empty()) {
      leave(open_.back(), at);
      open_.pop_back();
    }
    if (!counts(trace_, device_, event)) return;
    if (event.kind == Event::Kind::alloc)
      add_birth(event.id);
    else
      let_go(event.id);
  }

  void end_frame() {
    const auto [is_node, index] = frames_.back();
    frames_.pop_back();
    if (is_node || trace_.calls[index].composite) return;
    for (OpenForward& open : open_) open.last_call = index + 1;
  }

  void add_birth(uint32_t storage) {
    birth_[storage] = static_cast<uint32_t>(born_.size());
    born_.push_back(storage);
    for (OpenForward& open : open_) {
      open.alive += trace_.storages[storage].bytes;
      open.most = std::max(open.most, open.alive);
    }
  }

  void let_go(uint32_t storage) {
    const auto birth = birth_.find(storage);
    if (birth == birth_.end()) return;
    for (OpenForward& open : open_)
      if (open.first_birth <= birth->second) open.alive -= trace_.storages[storage].bytes;
    birth_.erase(birth);
  }

  void leave(const OpenForward& open, size_t at) {
    ModuleMemory& memory = result_[trace_.text(open.path)];
    memory.tmp = std::max(memory.tmp, open.most - open.alive);
    Bytes read_later;
    for (size_t i = open.first_birth; i < born_.size(); ++i)
      if (stays(born_[i]) && is_read_after(born_[i], at)) read_later += trace_.storages[born_[i]].bytes;
    memory.out += read_later.count > 0 ? read_later : last_result(open);
  }

  bool stays(uint32_t storage) const {
    return birth_.contains(storage) && trace_.storages[storage].category != Category::cached_copy;
  }

  bool is_read_after(uint32_t storage, size_t at) const {
    const auto read = last_read_.find(storage);
    return read != last_read_.end() && read->second > at;
  }

  // The first result of the last operator, if it was born within.
  Bytes last_result(const OpenForward& open) const {
    if (open.last_call == 0) return {};
    const CallRecord& call = trace_.calls[open.last_call - 1];
    if (call.outputs == 0) return {};
    const uint32_t storage = trace_.tensors[call.first_tensor + call.inputs].storage;
    const auto birth = birth_.find(storage);
    const bool within = birth != birth_.end() && birth->second >= open.first_birth;
    return within ? trace_.storages[storage].bytes : Bytes{};
  }

  const Trace& trace_;
  const Device device_;
  std::unordered_map<uint32_t, size_t> last_read_;  // storage → index of the last call that reads it
  std::vector<std::pair<bool, uint32_t>> frames_;   // is a node, index
  std::vector<OpenForward> open_;
  std::vector<uint32_t> born_;                    // storages, in order
  std::unordered_map<uint32_t, uint32_t> birth_;  // of those alive: index into born_
  MemoryByModule result_;
};

class BackwardWalk {
 public:
  BackwardWalk(const Trace& trace, Device device) : trace_(trace), device_(device) {}

  MemoryByModule walk() {
    Cursor cursor(trace_);
    for (const Event& event : first_part(trace_, Phase::backward)) {
      if (event.kind == Event::Kind::end) {
        const uint32_t before = cursor.node();
        cursor.pass(event);
        if (before != cursor.node()) end_node(before);
      } else {
        cursor.pass(event);
      }
      if (counts(trace_, device_, event))
        event.kind == Event::Kind::alloc ? add_birth(event.id, cursor.node()) : let_go(event.id);
    }
    MemoryByModule result;
    for (const auto& [path, module] : modules_)
      if (module.ended) result[path] = {.tmp = module.most - module.out, .out = module.out};
    return result;
  }

 private:
  struct Module {
    Bytes alive, most;  // of those born within
    Bytes out;          // alive when its last node so far ended
    bool ended = false;
  };

  const std::vector<Module*>& around(uint32_t text) {
    auto [found, is_new] = around_.try_emplace(text);
    if (is_new)
      for (const std::string_view path : enclosing_modules(trace_.text(text)))
        found->second.push_back(&modules_[path]);
    return found->second;
  }

  void add_birth(uint32_t storage, uint32_t node) {
    if (node == 0) return;
    const uint32_t module = trace_.nodes[node - 1].module;
    born_within_[storage] = module;
    for (Module* around_it : around(module)) {
      around_it->alive += trace_.storages[storage].bytes;
      around_it->most = std::max(around_it->most, around_it->alive);
    }
  }

  void let_go(uint32_t storage) {
    const auto born = born_within_.find(storage);
    if (born == born_within_.end()) return;
    for (Module* module : around(born->second)) module->alive -= trace_.storages[storage].bytes;
    born_within_.erase(born);
  }

  void end_node(uint32_t node) {
    for (Module* module : around(trace_.nodes[node - 1].module)) {
      module->out = module->alive;
      module->ended = true;
    }
  }

  const Trace& trace_;
  const Device device_;
  std::unordered_map<std::string_view, Module> modules_;
  std::unordered_map<uint32_t, std::vector<Module*>> around_;  // by text of the path
  std::unordered_map<uint32_t, uint32_t> born_within_;         // storage → text of the module
};

}  // namespace

MemoryByModule forward_memory(const Trace& trace, Device device) { return ForwardWalk(trace, device).walk(); }

MemoryByModule backward_memory(const Trace& trace, Device device) {
  return BackwardWalk(trace, device).walk();
}

}  // namespace metaprof
