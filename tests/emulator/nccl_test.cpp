#include <array>
#include <filesystem>
#include <string>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

struct UniqueId {
  char bytes[128];
};

constexpr int kInt64 = 4, kSum = 0, kToDevice = 1, kToHost = 2;

// One rank of a communicator of two, with memory on its device.
class Rank {
 public:
  Rank(const UniqueId& id, int rank) {
    EXPECT_EQ(nccl_("ncclCommInitRank", &communicator_, 2, id, rank), 0);
    EXPECT_EQ(runtime_("cudaMalloc", &memory_, size_t{4096}), 0);
  }
  void write(int64_t value) const {
    EXPECT_EQ(runtime_("cudaMemcpy", memory_, static_cast<void*>(&value), sizeof value, kToDevice), 0);
  }
  int64_t read(size_t index = 0) const {
    int64_t value = -1;
    void* const from = static_cast<char*>(memory_) + index * sizeof value;
    EXPECT_EQ(runtime_("cudaMemcpy", static_cast<void*>(&value), from, sizeof value, kToHost), 0);
    return value;
  }
  void all_reduce() const {
    EXPECT_EQ(nccl_("ncclAllReduce", memory_, memory_, size_t{1}, kInt64, kSum, communicator_, none_), 0);
  }
  void all_gather(size_t count) const {
    EXPECT_EQ(nccl_("ncclAllGather", memory_, memory_, count, kInt64, communicator_, none_), 0);
  }
  void broadcast(int root) const {
    EXPECT_EQ(nccl_("ncclBroadcast", memory_, memory_, size_t{1}, kInt64, root, communicator_, none_), 0);
  }
  void send(int peer) const {
    EXPECT_EQ(nccl_("ncclSend", memory_, size_t{1}, kInt64, peer, communicator_, none_), 0);
  }
  void receive(int peer) const {
    EXPECT_EQ(nccl_("ncclRecv", memory_, size_t{1}, kInt64, peer, communicator_, none_), 0);
  }
  /// How many ranks are in the part of those that gave this color.
  int split(int color) const {
    void* part = nullptr;
    int ranks = 0;
    EXPECT_EQ(nccl_("ncclCommSplit", communicator_, color, 0, &part, none_), 0);
    EXPECT_EQ(nccl_("ncclCommCount", part, &ranks), 0);
    return ranks;
  }

 private:
  Library nccl_{"libnccl.so.2"}, runtime_{"libcudart.so.13"};
  void *communicator_ = nullptr, *memory_ = nullptr, *const none_ = nullptr;
};

// Runs `work(rank, number)` for ranks 0 and 1 in processes of their own, that share a log's folder.
template <class Work>
void check_two_ranks(Work work) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("emulator-nccl-" + std::to_string(getpid()));
  fs::create_directory(folder);
  check({{"METAPROF_EMULATOR_LOG", folder.string()}}, [&] {
    UniqueId id;
    EXPECT_EQ(Library("libnccl.so.2")("ncclGetUniqueId", &id), 0);
    const pid_t other = fork();
    work(Rank(id, other == 0 ? 1 : 0), other == 0 ? 1 : 0);
    if (other == 0) _exit(testing::Test::HasFailure() ? 1 : 0);
    int status = -1;
    waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
  });
  fs::remove_all(folder);
}

TEST(Nccl, WhatTheHostWroteIsAddedUp) {
  check_two_ranks([](const Rank& rank, int number) {
    rank.write(number == 0 ? 5 : 7);
    rank.all_reduce();
    EXPECT_EQ(rank.read(), 12);
  });
}

TEST(Nccl, GatheredValuesAreThoseOfEachRank) {
  check_two_ranks([](const Rank& rank, int number) {
    rank.write(number == 0 ? 5 : 7);
    rank.all_gather(1);
    EXPECT_EQ(rank.read(0), 5);
    EXPECT_EQ(rank.read(1), 7);
  });
}

TEST(Nccl, ABroadcastIsTheRootsAlsoWhereOthersWroteNothing) {
  check_two_ranks([](const Rank& rank, int number) {
    if (number == 1) rank.write(9);
    rank.broadcast(1);
    EXPECT_EQ(rank.read(), 9);
  });
}

TEST(Nccl, AReceiveMayStandBeforeTheSend) {
  check_two_ranks([](const Rank& rank, int number) {
    if (number == 0) {
      rank.receive(1);
      EXPECT_EQ(rank.read(), 3);
    } else {
      rank.write(3);
      rank.send(0);
    }
  });
}

TEST(Nccl, WhatNobodyWroteIsZero) {
  check_two_ranks([](const Rank& rank, int) {
    rank.all_reduce();
    EXPECT_EQ(rank.read(), 0);
  });
}

TEST(Nccl, ASplitHasTheRanksOfItsColor) {
  check_two_ranks([](const Rank& rank, int number) { EXPECT_EQ(rank.split(number), 1); });
  check_two_ranks([](const Rank& rank, int) { EXPECT_EQ(rank.split(4), 2); });
}

TEST(Nccl, WithoutALogEveryRankIsTakenToSendTheSame) {
  check({}, [] {
    UniqueId id;
    EXPECT_EQ(Library("libnccl.so.2")("ncclGetUniqueId", &id), 0);
    const Rank rank(id, 0);
    rank.write(5);
    rank.all_reduce();
    EXPECT_EQ(rank.read(), 10);
  });
}

}  // namespace
}  // namespace emulated
