#include "meta/allocator/alloc_conf.h"

#include <gtest/gtest.h>

#include "tests/allocator/expect_error.h"

namespace metaprof {
namespace {

using Divisions = std::array<std::uint64_t, 16>;

TEST(AllocConf, EmptyTextGivesTheDefaults) {
  const AllocConf conf = parse_alloc_conf("");
  EXPECT_EQ(conf.max_split_size, kUnlimited);
  EXPECT_EQ(conf.max_non_split_rounding, 20 * kMiB);
  EXPECT_EQ(conf.large_segment_size, 20 * kMiB);
  EXPECT_EQ(conf.roundup_power2_divisions, Divisions{});
  EXPECT_EQ(conf.garbage_collection_threshold, 0);
  EXPECT_FALSE(conf.expandable_segments);
  EXPECT_EQ(conf.per_process_memory_fraction, 1);
}

TEST(AllocConf, ReadsEveryOption) {
  const AllocConf conf = parse_alloc_conf(
      "backend:native, expandable_segments:True, garbage_collection_threshold:0.6,"
      "graph_capture_record_stream_reuse:True, large_segment_size_mb:32, max_non_split_rounding_mb:40,"
      "max_split_size_mb:64, per_process_memory_fraction:0.5, pinned_num_register_threads:8,"
      "pinned_reserve_segment_size_mb:4, pinned_use_background_threads:False, "
      "pinned_use_cuda_host_register:True,"
      "release_lock_on_cudamalloc:True, roundup_power2_divisions:8");
  EXPECT_TRUE(conf.expandable_segments);
  EXPECT_EQ(conf.garbage_collection_threshold, 0.6);
  EXPECT_EQ(conf.large_segment_size, 32 * kMiB);
  EXPECT_EQ(conf.max_non_split_rounding, 40 * kMiB);
  EXPECT_EQ(conf.max_split_size, 64 * kMiB);
  EXPECT_EQ(conf.per_process_memory_fraction, 0.5);
  EXPECT_EQ(conf.roundup_power2_divisions[0], 8u);
  EXPECT_EQ(conf.roundup_power2_divisions[15], 8u);
}

TEST(AllocConf, BlanksRepetitionAndACommaAtTheEndDoNotMatter) {
  EXPECT_EQ(parse_alloc_conf(" max_split_size_mb : 64 , max_split_size_mb:32, ").max_split_size, 32 * kMiB);
}

TEST(AllocConf, ALargerSegmentIsReadFirstAndMovesTheOtherDefaults) {
  EXPECT_EQ(parse_alloc_conf("large_segment_size_mb:40").max_non_split_rounding, 40 * kMiB);
  EXPECT_EQ(error_of([] { parse_alloc_conf("max_split_size_mb:32,large_segment_size_mb:40"); }),
            "alloc-conf: max_split_size_mb must be at least 40 (large_segment_size_mb); got 32");
}

// What torch.cuda.memory._snapshot() of PyTorch 2.11 shows for these lists. Entry i is for sizes from 2^i
// MiB.
TEST(AllocConf, DivisionListsFillTheIntervals) {
  struct Case {
    const char* list;
    Divisions expected;
  };
  const Case cases[] = {
      {"[256:1,512:2,1024:4,>:8]", {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8}},
      {"[64:8,256:4,>:1]", {8, 8, 8, 8, 8, 8, 8, 0, 4, 1, 1, 1, 1, 1, 1, 1}},
      {"[16:2,65536:4,>:16]", {2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4}},
      {"[32768:4,>:16]", {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
      {"[>:4]", {0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
      {"[]", {}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(parse_alloc_conf(std::string("roundup_power2_divisions:") + c.list).roundup_power2_divisions,
              c.expected)
        << c.list;
  }
}

TEST(AllocConf, SaysWhatIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"expandable_segment:True",
       "alloc-conf: unknown option 'expandable_segment'; known are backend, expandable_segments, "
       "garbage_collection_threshold, graph_capture_record_stream_reuse, large_segment_size_mb, "
       "max_non_split_rounding_mb, max_split_size_mb, per_process_memory_fraction, "
       "pinned_num_register_threads, "
       "pinned_reserve_segment_size_mb, pinned_use_background_threads, pinned_use_cuda_host_register, "
       "release_lock_on_cudamalloc, roundup_power2_divisions"},
      {"max_split_size_mb",
       "alloc-conf: option 'max_split_size_mb' has no value; write max_split_size_mb:VALUE"},
      {"max_split_size_mb:",
       "alloc-conf: option 'max_split_size_mb' has no value; write max_split_size_mb:VALUE"},
      {"max_split_size_mb=64",
       "alloc-conf: option 'max_split_size_mb=64' has no value; write max_split_size_mb=64:VALUE"},
      {",", "alloc-conf: expected an option before ','"},
      {"max_split_size_mb:64]", "alloc-conf: expected ',' after the value of max_split_size_mb, got ']'"},
      {"max_split_size_mb:64abc",
       "alloc-conf: max_split_size_mb must be a whole number of at least 0; got '64abc'"},
      {"max_split_size_mb:-1",
       "alloc-conf: max_split_size_mb must be a whole number of at least 0; got '-1'"},
      {"max_split_size_mb:99999999999999999999",
       "alloc-conf: max_split_size_mb must be a whole number of at least 0; got '99999999999999999999'"},
      {"max_split_size_mb:19",
       "alloc-conf: max_split_size_mb must be at least 20 (large_segment_size_mb); got 19"},
      {"max_split_size_mb:[64]", "alloc-conf: max_split_size_mb does not take a list"},
      {"max_non_split_rounding_mb:19",
       "alloc-conf: max_non_split_rounding_mb must be at least 20 (large_segment_size_mb); got 19"},
      {"large_segment_size_mb:10", "alloc-conf: large_segment_size_mb must be more than 10; got 10"},
      {"expandable_segments:true", "alloc-conf: expandable_segments must be True or False; got 'true'"},
      {"garbage_collection_threshold:1",
       "alloc-conf: garbage_collection_threshold must be above 0 and below 1; got 1"},
      {"garbage_collection_threshold:x",
       "alloc-conf: garbage_collection_threshold must be a number; got 'x'"},
      {"garbage_collection_threshold:nan",
       "alloc-conf: garbage_collection_threshold must be a number; got 'nan'"},
      {"per_process_memory_fraction:1.5",
       "alloc-conf: per_process_memory_fraction must be between 0 and 1; got 1.5"},
      {"roundup_power2_divisions:3",
       "alloc-conf: the divisions of roundup_power2_divisions must be 0 or a power of 2; got 3"},
      {"roundup_power2_divisions:0", "alloc-conf: roundup_power2_divisions must be a power of 2; got 0"},
      {"roundup_power2_divisions:[3:4]",
       "alloc-conf: the sizes of roundup_power2_divisions must be powers of 2; got 3"},
      {"roundup_power2_divisions:[4]",
       "alloc-conf: the list of roundup_power2_divisions needs SIZE_MB:DIVISIONS or >:DIVISIONS; got '4'"},
      {"roundup_power2_divisions:[4:4,,8:2]",
       "alloc-conf: the list of roundup_power2_divisions needs SIZE_MB:DIVISIONS or >:DIVISIONS; got ''"},
      {"roundup_power2_divisions:[4:4", "alloc-conf: the list of roundup_power2_divisions has no ']'"},
      {"pinned_num_register_threads:256",
       "alloc-conf: pinned_num_register_threads must be a power of 2 up to 128; got 256"},
      {"pinned_reserve_segment_size_mb:0",
       "alloc-conf: pinned_reserve_segment_size_mb must be more than 0; got 0"},
      {"release_lock_on_cudamalloc:1",
       "alloc-conf: release_lock_on_cudamalloc must be True or False; got '1'"},
      {"backend:cudaMallocAsync",
       "alloc-conf: backend:cudaMallocAsync is not modelled; only backend:native is"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(error_of([&] { parse_alloc_conf(c.text); }), c.message) << c.text;
  }
}

}  // namespace
}  // namespace metaprof
