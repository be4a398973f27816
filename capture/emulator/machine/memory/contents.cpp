#include "capture/emulator/machine/memory/contents.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "capture/emulator/machine/devices.h"

namespace metaprof::emulator {
namespace {

constexpr size_t kMostValues = 1024;

// Bytes that are there when somebody has waited for them.
class Late {
 public:
  explicit Late(std::function<std::optional<std::string>()> wait) : wait_(std::move(wait)) {}
  const std::optional<std::string>& bytes() {
    const std::lock_guard lock(mutex_);
    if (wait_) bytes_ = std::exchange(wait_, nullptr)();
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::function<std::optional<std::string>()> wait_;
  std::optional<std::string> bytes_;
};

// A stretch of what somebody wrote: of `bytes`, or of `late`.
struct Value {
  size_t size = 0;
  std::string bytes;
  std::shared_ptr<Late> late;
  size_t offset = 0;  ///< in `late`
  bool of_collective = false;
  uint64_t order = 0;  ///< when it was put there

  Value part(size_t from, size_t count) const {
    Value out{count, {}, late, offset + from, of_collective, 0};
    if (!late) out.bytes = bytes.substr(from, count);
    return out;
  }
};

using Pieces = std::vector<std::pair<size_t, Value>>;

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
    if (it != values.begin() && std::prev(it)->first + std::prev(it)->second.size > at) --it;
    while (it != values.end() && it->first < at + bytes) erase(it++);
  }
  void put(uintptr_t at, Value value) {
    forget(at, value.size);
    if (values.size() == kMostValues) erase(values.find(by_age.begin()->second));
    by_age[next] = at;
    value.order = next++;
    values[at] = std::move(value);
  }
  /// What is known of a stretch: values by their offset in it.
  Pieces find(uintptr_t at, size_t bytes) const {
    Pieces out;
    auto it = values.upper_bound(at);
    if (it != values.begin() && std::prev(it)->first + std::prev(it)->second.size > at) --it;
    for (; it != values.end() && it->first < at + bytes; ++it) {
      const auto& [base, value] = *it;
      const uintptr_t from = std::max(at, base), to = std::min(at + bytes, base + value.size);
      out.emplace_back(from - at, value.part(from - base, to - from));
    }
    return out;
  }
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

void put(void* at, Value value) {
  const std::lock_guard lock(machine_mutex());
  state().put(uintptr_t(at), std::move(value));
}

Pieces find(const void* at, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  return state().find(uintptr_t(at), bytes);
}

// Writes a value; false if it is not known. Waits without the machine's lock: other threads go on.
bool write(const Value& value, char* to) {
  if (!value.late) return std::memcpy(to, value.bytes.data(), value.size), true;
  const std::optional<std::string>& all = value.late->bytes();
  if (all) std::memcpy(to, all->data() + value.offset, value.size);
  return all.has_value();
}

}  // namespace

void remember_written(void* to, const void* from, size_t bytes) {
  if (bytes > kMostContents) return forget_contents(to, bytes);
  put(to, {bytes, std::string(static_cast<const char*>(from), bytes), {}});
}

void copy_contents(void* to, const void* from, size_t bytes) {
  const Pieces pieces = find(from, bytes);
  forget_contents(to, bytes);
  for (const auto& [offset, value] : pieces) put(static_cast<char*>(to) + offset, value);
}

void forget_contents(void* at, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  state().forget(uintptr_t(at), bytes);
}

void read_contents(void* host, const void* at, size_t bytes) {
  std::memset(host, 0, bytes);
  for (const auto& [offset, value] : find(at, bytes))
    if (value.of_collective) write(value, static_cast<char*>(host) + offset);
}

std::optional<std::string> written_contents(const void* at, size_t bytes) {
  if (bytes > kMostContents) return {};
  std::string out(bytes, '\0');
  bool known = false;
  for (const auto& [offset, value] : find(at, bytes)) known |= write(value, out.data() + offset);
  return known ? std::optional(out) : std::nullopt;
}

void put_result(void* at, std::string bytes) {
  const size_t size = bytes.size();
  put(at, {size, std::move(bytes), {}, 0, true});
}

void put_arrival(void* at, size_t bytes, std::function<std::optional<std::string>()> wait) {
  put(at, {bytes, {}, std::make_shared<Late>(std::move(wait)), 0, true});
}

}  // namespace metaprof::emulator

int metaprof_emulator_known(const void* at, uint64_t bytes, void* out) {
  const std::optional<std::string> known = metaprof::emulator::written_contents(at, bytes);
  if (known) std::memcpy(out, known->data(), bytes);
  return known ? 1 : 0;
}

void metaprof_emulator_write(void* at, uint64_t bytes, const void* from) {
  metaprof::emulator::put_result(at, std::string(static_cast<const char*>(from), bytes));
}
