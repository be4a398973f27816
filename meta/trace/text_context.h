#pragma once
// What a line of a trace's text means without saying it. The writer leaves out what follows from here, the
// parser fills it in, so both ask the same code.

#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

class TextContext {
 public:
  enum class Kind : uint8_t { module, call, node };
  struct Open {
    Kind kind;
    uint32_t index;   ///< of the call or node; text of a module's path
    uint32_t module;  ///< text
  };

  Phase phase = Phase::setup;

  void push(Kind kind, uint32_t index, uint32_t module) { open_.push_back({kind, index, module}); }
  /// The innermost open module; null if there is none.
  const Open* innermost_module() const { return find(true); }
  /// The innermost open call or node; null if there is none.
  const Open* innermost_frame() const { return find(false); }
  void pop_module() { pop(true); }
  void pop_frame() { pop(false); }

  uint32_t module() const { return open_.empty() ? 0 : open_.back().module; }
  /// 1 + index of the innermost call; 0: none is open.
  uint32_t call() const {
    for (size_t i = open_.size(); i-- > 0;)
      if (open_[i].kind == Kind::call) return open_[i].index + 1;
    return 0;
  }
  /// 1 + index of the innermost node; 0: none is being evaluated.
  uint32_t node() const {
    for (size_t i = open_.size(); i-- > 0;)
      if (open_[i].kind == Kind::node) return open_[i].index + 1;
    return 0;
  }
  /// Open calls within the innermost node.
  uint16_t depth() const {
    uint16_t depth = 0;
    for (size_t i = open_.size(); i-- > 0 && open_[i].kind != Kind::node;)
      if (open_[i].kind == Kind::call) ++depth;
    return depth;
  }

 private:
  const Open* find(bool is_module) const {
    for (size_t i = open_.size(); i-- > 0;)
      if ((open_[i].kind == Kind::module) == is_module) return &open_[i];
    return nullptr;
  }
  void pop(bool is_module) {
    if (const Open* open = find(is_module)) open_.erase(open_.begin() + (open - open_.data()));
  }

  std::vector<Open> open_;
};

}  // namespace metaprof
