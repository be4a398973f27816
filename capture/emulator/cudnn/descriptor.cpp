#include "capture/emulator/cudnn/descriptor.h"

#include <algorithm>
#include <cstring>

namespace metaprof::emulator::cudnn {

const Attribute* Node::find(int name) const {
  const auto it = std::find_if(attributes.begin(), attributes.end(),
                               [name](const Attribute& a) { return a.name == name; });
  return it == attributes.end() ? nullptr : &*it;
}

const Node* Node::node(int name) const {
  const Attribute* const a = find(name);
  return a && a->nodes.size() == 1 ? a->nodes[0].get() : nullptr;
}

std::vector<int64_t> Node::numbers(int name) const {
  const Attribute* const a = find(name);
  std::vector<int64_t> out(a && a->type == integers ? size_t(a->count) : 0);
  if (!out.empty()) std::memcpy(out.data(), a->bytes.data(), out.size() * sizeof(int64_t));
  return out;
}

int64_t Node::number(int name) const {
  const Attribute* const a = find(name);
  if (!a || a->count < 1) return -1;
  int64_t wide = 0;
  std::memcpy(&wide, a->bytes.data(),
              std::min(a->bytes.size(), sizeof wide));  // all values are small and positive
  return wide;
}

size_t size_of(int type) {
  switch (type) {
    case boolean:
    case text: return 1;
    case integers:
    case doubles:
    case pointer:
    case handle:
    case descriptors: return 8;
    case fraction: return 16;
    default: return 4;  // enumerations, floats
  }
}

}  // namespace metaprof::emulator::cudnn
