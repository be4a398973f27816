#include "emulator/machine/contents.h"

#include <cstdint>
#include <map>

#include "emulator/machine/devices.h"

namespace metaprof::emulator {
namespace {

constexpr size_t kMostBytes = size_t(64) << 10;  // of one value
constexpr size_t kMostValues = 1024;

struct Value {
  std::string bytes;
  bool of_collective = false;
  uint64_t order = 0;  ///< when it was put there
};

struct State {
  std::map<uintptr_t, Value> values;     // by address; they do not overlap
  std::map<uint64_t, uintptr_t> by_age;  // the oldest goes first
  uint64_t next = 0;

  void erase(std::map<uintptr_t, Value>::iterator it) {
    by_age.erase(it->second.order);
    values.erase(it);
  }
  void forget(uintptr_t at, size_t bytes) {
    auto it = values.upper_bound(at);
    if (it != values.begin() && std::prev(it)->first + std::prev(it)->second.bytes.size() > at) --it;
    while (it != values.end() && it->first < at + bytes) erase(it++);
  }
  void put(uintptr_t at, std::string bytes, bool of_collective) {
    forget(at, bytes.size());
    if (values.size() == kMostValues) erase(values.find(by_age.begin()->second));
    by_age[next] = at;
    values[at] = {std::move(bytes), of_collective, next++};
  }
  std::optional<std::string> find(uintptr_t at, size_t bytes, bool of_collective_only) const {
    auto it = values.upper_bound(at);
    if (it == values.begin()) return {};
    const auto& [base, value] = *--it;
    if (at + bytes > base + value.bytes.size() || (of_collective_only && !value.of_collective)) return {};
    return value.bytes.substr(at - base, bytes);
  }
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

}  // namespace

void remember_written(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  if (bytes > kMostBytes)
    state().forget(uintptr_t(to), bytes);
  else
    state().put(uintptr_t(to), std::string(static_cast<const char*>(from), bytes), false);
}

void copy_contents(void* to, const void* from, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  std::optional<std::string> result = state().find(uintptr_t(from), bytes, true);
  std::optional<std::string> written = state().find(uintptr_t(from), bytes, false);
  if (written)
    state().put(uintptr_t(to), std::move(*written), result.has_value());
  else
    state().forget(uintptr_t(to), bytes);
}

void forget_contents(void* at, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  state().forget(uintptr_t(at), bytes);
}

std::optional<std::string> readable_contents(const void* at, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  return state().find(uintptr_t(at), bytes, true);
}

std::optional<std::string> written_contents(const void* at, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  return state().find(uintptr_t(at), bytes, false);
}

void put_result(void* at, std::string bytes) {
  const std::lock_guard lock(machine_mutex());
  state().put(uintptr_t(at), std::move(bytes), true);
}

}  // namespace metaprof::emulator
