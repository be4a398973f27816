// Scripts of random operations that PyTorch 2.11 carried out: every address, every failure with its message,
// and torch.cuda.memory_stats() in between.

#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "core/formats/gzip_lines.h"
#include "meta/allocator/caching_allocator.h"

namespace metaprof {
namespace {

// Lines are `malloc ID STREAM BYTES ADDRESS`, `oom STREAM BYTES MESSAGE`, `free ID`, `stat NAME VALUE`
// (changed since the last check), `check`, and the names of CachingAllocator's functions with their
// arguments.
class Script {
 public:
  explicit Script(const std::filesystem::path& path) : lines_(path, "a script") {}

  void run() {
    std::string_view text;
    while (lines_.next(text)) {
      line_.clear();
      line_.str(std::string(text));
      step(next<std::string>());
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(requests_, 800);
    EXPECT_GT(checks_, 10);
  }

 private:
  void step(const std::string& what) {
    if (what == "alloc_conf")
      conf_ = next<std::string>();
    else if (what == "memory")
      start(next<std::uint64_t>());
    else if (what == "malloc")
      malloc();
    else if (what == "oom")
      out_of_memory();
    else if (what == "free")
      a().free(blocks_.at(next<int>()));
    else if (what == "record_stream")
      record_stream();
    else if (what == "empty_cache")
      a().empty_cache();
    else if (what == "reset_peak")
      a().reset_peaks();
    else if (what == "memory_fraction")
      a().set_memory_fraction(next<double>());
    else if (what == "stat")
      stat();
    else if (what == "check")
      check();
    else
      pool_step(what);
  }

  void pool_step(const std::string& what) {
    PoolId pool;
    pool.first = next<std::uint64_t>();
    pool.second = next<std::uint64_t>();
    if (what == "create_pool")
      create_pool(pool);
    else if (what == "delete_pool")
      delete_pool(pool);
    else if (what == "begin_pool")
      begin_pool(pool, next<int>());
    else if (what == "end_pool")
      a().end_pool(pool);
    else if (what == "release_pool")
      a().release_pool(pool);
    else
      FAIL() << where() << "unknown line " << what;
  }

  void start(std::uint64_t memory) {
    allocator_.emplace(CachingAllocatorOptions{.conf = parse_alloc_conf(conf_ == "-" ? "" : conf_),
                                               .device = {.capacity = memory}});
  }

  void malloc() {
    const int id = next<int>();
    const auto stream = next<StreamId>();
    const auto bytes = next<std::int64_t>();
    const auto block = a().allocate(bytes, stream);
    ASSERT_TRUE(block.has_value()) << where();
    ASSERT_EQ(a().block(*block).address, next<std::uint64_t>()) << where();
    blocks_[id] = *block;
    ++requests_;
  }

  void out_of_memory() {
    const auto stream = next<StreamId>();
    const auto bytes = next<std::int64_t>();
    ASSERT_FALSE(a().allocate(bytes, stream).has_value()) << where();
    std::string message;
    line_.get();
    std::getline(line_, message);
    ASSERT_EQ(a().failed_request().message(), message) << where();
  }

  void record_stream() {
    const int id = next<int>();
    a().record_stream(blocks_.at(id), next<StreamId>());
  }

  void create_pool(PoolId pool) {
    a().create_pool(pool);
    if (next<int>() != 0) a().use_on_out_of_memory(pool, true);
    if (next<int>() != 0) a().never_split(pool);
  }

  void delete_pool(PoolId pool) {  // as torch.cuda.MemPool ends
    a().use_on_out_of_memory(pool, false);
    a().release_pool(pool);
    a().empty_cache(pool);
  }

  void begin_pool(PoolId pool, int stream) {
    a().begin_pool(pool, stream < 0 ? std::nullopt : std::optional(static_cast<StreamId>(stream)));
  }

  void stat() {
    const std::string name = next<std::string>();
    const StatisticField* field = StatisticField::find(name);
    ASSERT_NE(field, nullptr) << name;
    stats_[field] = next<std::uint64_t>();
  }

  void check() {
    for (const auto& [field, value] : stats_) {
      ASSERT_EQ(field->of(a().statistics()), value) << where() << field->name();
    }
    ASSERT_EQ(a().broken_invariant(), "") << where();
    ++checks_;
  }

  template <class T>
  T next() {
    T value{};
    line_ >> value;
    EXPECT_FALSE(line_.fail()) << where();
    return value;
  }
  CachingAllocator& a() { return *allocator_; }
  std::string where() const { return "line " + std::to_string(lines_.number()) + ": "; }

  GzipLines lines_;
  std::istringstream line_;
  std::string conf_;
  std::optional<CachingAllocator> allocator_;
  std::unordered_map<int, BlockNumber> blocks_;
  std::unordered_map<const StatisticField*, std::uint64_t> stats_;
  int requests_ = 0;
  int checks_ = 0;
};

class Scripts : public testing::TestWithParam<const char*> {};

TEST_P(Scripts, AreRepeatedExactly) {
  Script(std::string("tests/data/allocator/") + GetParam() + ".script.gz").run();
}

INSTANTIATE_TEST_SUITE_P(Recorded, Scripts,
                         testing::Values("streams", "max_split_and_gc", "expandable", "roundup", "pools",
                                         "pools_expandable"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace metaprof
