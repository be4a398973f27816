#include "capture/emulator/nccl/exchange.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "capture/emulator/machine/environment.h"

namespace metaprof::emulator::nccl {
namespace {

using Clock = std::chrono::steady_clock;
// A rank that has not even made the communicator after so long is none of this machine's; one that has made it may be
// slow.
constexpr std::chrono::seconds kUntilMade(60), kUntilSent(600);

// Before each value in a file.
struct Head {
  int64_t number, size;  // size -1: the host did not write it
  int64_t to;
};

}  // namespace

struct Exchange::Reader {
  OwnFile file;
  off_t at = 0;
  bool absent = false;
  std::map<std::pair<int, int64_t>, Sent> values;  // by receiver and number
};

Exchange::Exchange(std::string name, int ranks, int rank) : name_(std::move(name)), rank_(rank) {
  for (int i = 0; i < ranks; ++i) readers_.push_back(std::make_unique<Reader>());
  possible_ = !name_.empty() && !environment().log_folder.empty() && own_file() >= 0;
}

Exchange::~Exchange() = default;

std::string Exchange::path(int rank) const {
  return environment().log_folder + "/nccl-" + name_ + "-" + std::to_string(rank);
}

// Opened again where the program has closed it.
int Exchange::own_file() {
  if (!file_.is_open())
    file_.take(open(path(rank_).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  return file_.number();
}

int64_t Exchange::send(int to, const Sent& value) {
  const std::lock_guard lock(mutex_);
  const Head head{sent_[to]++, value ? int64_t(value->size()) : -1, to};
  std::string text(reinterpret_cast<const char*>(&head), sizeof head);
  if (value) text += *value;
  [[maybe_unused]] const ssize_t written = write(own_file(), text.data(), text.size());
  return head.number;
}

// Reads what a rank has written since; false if it has not made its file.
bool Exchange::read_more(int from) {
  Reader& reader = *readers_[size_t(from)];
  if (!reader.file.is_open()) reader.file.take(open(path(from).c_str(), O_RDONLY | O_CLOEXEC));
  const int file = reader.file.number();
  if (file < 0) return false;
  Head head;
  while (pread(file, &head, sizeof head, reader.at) == ssize_t(sizeof head)) {
    Sent value;
    if (head.size >= 0) {
      value.emplace(size_t(head.size), '\0');
      if (pread(file, value->data(), size_t(head.size), reader.at + off_t(sizeof head)) != head.size)
        break;  // it is being written
    }
    reader.at += off_t(sizeof head) + std::max<off_t>(head.size, 0);
    if (head.to == kAll || head.to == rank_) reader.values[{int(head.to), head.number}] = std::move(value);
  }
  return true;
}

Sent Exchange::receive(int from, int to, int64_t number) {
  Reader& reader = *readers_[size_t(from)];
  const auto begin = Clock::now();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (reader.absent) return {};
      const bool made = read_more(from);
      if (const auto found = reader.values.find({to, number}); found != reader.values.end())
        return std::move(reader.values.extract(found).mapped());  // it is asked for once
      reader.absent = Clock::now() - begin > (made ? kUntilSent : kUntilMade);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace metaprof::emulator::nccl
