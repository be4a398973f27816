// Reading recordings, and replaying them.

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/allocator/expect_error.h"
#include "tests/evidence_folder.h"
#include "tests/read_file.h"
#include "validation/allocator/rerun_allocations.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    R"({"config": {"alloc_conf": "", "env": {}}, "device_memory": 104857600, "phases": [)"
    R"({"phase": "setup", "allocated_bytes": {"current": 512, "peak": 1024}, "num_ooms": 0}]})";
constexpr const char* kLog =
    "# phase setup\n"
    "> aten::empty\n"
    "S fffe000000 2097152\n"
    "+ fffe000000 100\n"
    "<\n"
    "+ fffe000200 512\n"
    "- fffe000000\n";

// Recordings in a folder of their own.
class Recordings : public testing::Test {
 protected:
  Recordings() : folder_(fs::temp_directory_path() / ("metaprof_recordings_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Recordings() override { fs::remove_all(folder_); }

  static std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
  }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  std::string recording(const std::string& log, const std::string& head = kHead) {
    write("x.log.gz", gzip(log));
    write("x.json", head);
    return (folder_ / "x.log.gz").string();
  }

  // What reading says, with the folder left out.
  std::string error(const std::string& log, const std::string& head = kHead) {
    return without_folder(error_of([&] { read_recording(recording(log, head)); }));
  }
  std::string without_folder(std::string text) const {
    const std::string prefix = folder_.string() + "/";
    while (text.find(prefix) != std::string::npos) text.erase(text.find(prefix), prefix.size());
    return text;
  }

  std::vector<std::string> differences(const std::string& log, const std::string& head = kHead) {
    std::vector<std::string> all;
    for (const RerunDifference& d : rerun_allocations({recording(log, head)}).differences) {
      all.push_back(std::to_string(d.line) + " " + d.what + ": " + d.expected + " / " + d.got);
    }
    return all;
  }

  fs::path folder_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(Recordings, ReadsTheEventsOfALog) {
  const Recording r =
      read_recording(recording(replaced(kLog, "+ fffe000200 512\n", "+ fffe000200 512 s2 p1.7\n")));
  ASSERT_EQ(r.events.size(), 5u);
  EXPECT_EQ(r.events[0].kind, RecordedEvent::Kind::phase);
  EXPECT_EQ(r.events[1].kind, RecordedEvent::Kind::segment);
  EXPECT_EQ(r.events[2].address, 0xfffe000000u);
  EXPECT_EQ(r.events[2].bytes, 100u);
  EXPECT_EQ(r.events[3].stream, 2);
  EXPECT_EQ(r.pools[r.events[3].pool], (PoolId{1, 7}));
  EXPECT_EQ(r.events[4].allocation, 0u);
  EXPECT_EQ(r.events[4].line, 7u);
  EXPECT_FALSE(r.events[4].delayed);
  EXPECT_EQ(r.head.device_memory.count, 104857600);
}

TEST_F(Recordings, TakesAPlainLog) {
  recording(kLog);
  write("x.log", kLog);
  EXPECT_EQ(read_recording(folder_ / "x.log").events.size(), 5u);
}

TEST_F(Recordings, OptionsMayComeFromTheEnvironment) {
  const std::string head =
      replaced(kHead, R"("env": {})", R"("env": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"})");
  EXPECT_EQ(read_recording(recording(kLog, head)).head.alloc_conf, "max_split_size_mb:64");
}

TEST_F(Recordings, EarlierVersionsReadTheOlderVariableOnly) {
  const std::pair<const char*, const char*> cases[] = {
      {"2.9.1", ""}, {"2.10.0+cu128", "max_split_size_mb:64"}, {"2.15.0", "max_split_size_mb:64"}};
  for (const auto& [version, settings] : cases) {
    std::string head = replaced(kHead, R"("alloc_conf": "")", R"("alloc_conf": "max_split_size_mb:64")");
    head = replaced(head, R"({"config")", R"({"torch": ")" + std::string(version) + R"(", "config")");
    EXPECT_EQ(read_recording(recording(kLog, head)).head.alloc_conf, settings) << version;
    const std::string older =
        replaced(head, R"("env": {})", R"("env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})");
    EXPECT_EQ(read_recording(recording(kLog, older)).head.alloc_conf,
              *settings ? settings : "expandable_segments:True")
        << version;
  }
}

TEST_F(Recordings, BadLinesAreNamed) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const Case cases[] = {
      {"- fffe000000\n", "- fffe000000\n\n", "x.log.gz:8: empty line"},
      {"- fffe000000\n", "? fffe\n", "x.log.gz:7: '? fffe' is not a line of a recording"},
      {"- fffe000000\n", "-fffe000000\n", "x.log.gz:7: '-fffe000000' is not a line of a recording"},
      {"- fffe000000\n", "- xyz\n", "x.log.gz:7: '- xyz' is not a line of a recording"},
      {"- fffe000000\n", "- fffe000000 512\n", "x.log.gz:7: '- fffe000000 512' is not a line of a recording"},
      {"- fffe000000\n", "- fffe000000 \n", "x.log.gz:7: '- fffe000000 ' is not a line of a recording"},
      {"- fffe000000\n", "- 1ffffffffffffffff\n",
       "x.log.gz:7: '- 1ffffffffffffffff' is not a line of a recording"},
      {"- fffe000000\n", "- fffe000400\n",
       "x.log.gz:7: block fffe000400 is returned, but was not handed out"},
      {"- fffe000000\n", "c fffe000000\n", "x.log.gz:7: block fffe000000 becomes free, but was not returned"},
      {"- fffe000000\n", "! oom\n", "x.log.gz:7: '! oom' is not a line of a recording"},
      {"- fffe000000\n", "! oom 0\n", "x.log.gz:7: a request of 0 bytes"},
      {"+ fffe000200 512\n", "+ fffe000000 512\n",
       "x.log.gz:6: block fffe000000 is handed out, but was not returned"},
      {"+ fffe000200 512\n", "+ fffe000200\n", "x.log.gz:6: '+ fffe000200' is not a line of a recording"},
      {"+ fffe000200 512\n", "+ fffe000200 0\n", "x.log.gz:6: a request of 0 bytes"},
      {"+ fffe000200 512\n", "+ fffe000200 5000000000000000000\n",
       "x.log.gz:6: a request of 5000000000000000000 bytes"},
      {"+ fffe000200 512\n", "+ fffe000200 512 s99999\n",
       "x.log.gz:6: '+ fffe000200 512 s99999' is not a line of a recording"},
      {"+ fffe000200 512\n", "+ fffe000200 512 p1\n",
       "x.log.gz:6: '+ fffe000200 512 p1' is not a line of a recording"},
      {"+ fffe000200 512\n", "+ fffe000200 512 x\n",
       "x.log.gz:6: '+ fffe000200 512 x' is not a line of a recording"},
      {"<\n", "<\n<\n", "x.log.gz:6: an operator ends that has not begun"},
      {"<\n", "", "x.log.gz:6: 1 operators have not ended; the file is truncated"},
      {"# phase setup", "# phase forward", "x.log.gz:1: '# phase forward', but the .json has now setup"},
      {"# phase setup\n", "# phase setup\n# phase forward step 0\n",
       "x.log.gz:2: '# phase forward step 0', but the .json has no more phases"},
      {"# phase setup\n", "",
       "x.log.gz:6: phase 'setup' of the .json is missing; the file is truncated or belongs to another "
       ".json"},
      {"# phase setup", "= opinfo/add/0/f32",
       "x.log.gz:1: operator cases; `metaprof ops --replay` repeats them"},
  };
  for (const Case& c : cases) EXPECT_EQ(error(replaced(kLog, c.from, c.to)), c.message) << c.to;
  EXPECT_EQ(error(""), "x.log.gz:0: the file is empty");
  EXPECT_EQ(error("# phase setup\n"),
            "x.log.gz:1: there are no requests to the allocator in it; nothing to repeat");
  EXPECT_EQ(error("# phase setup"), "x.log.gz:1: ends in the middle of the line; the file is truncated");
  EXPECT_EQ(error(std::string((1 << 24) + 1, 'x')),
            "x.log.gz:1: the line is longer than 16 MiB; this is no recording");
}

TEST_F(Recordings, BadHeadsAreNamed) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const Case cases[] = {
      {"\"alloc_conf\": \"\"", "\"alloc_conf\": 1", "x.json: config.alloc_conf: expected a text, got 1"},
      {"\"alloc_conf\": \"\"", "\"alloc_conf\": \"split:1\"",
       "x.json: alloc-conf: unknown option 'split'; known are"},
      {"\"device_memory\": 104857600", "\"device_memory\": -1",
       "x.json: device_memory: expected a whole number of at least 0, got -1"},
      {"\"config\"", "\"conf\"",
       "x.json: 'config' is missing; a measurement is what `metaprof run --json` writes, or a recording "
       "(docs/how_to/check.md)"},
      {"\"phase\": \"setup\"", "\"phase\": 1", "x.json: phases[0].phase: expected a text, got 1"},
      {"\"num_ooms\": 0", "\"num_oom\": 0", "x.json: phase 'setup' has an unknown statistic 'num_oom'"},
      {"\"peak\": 1024", "\"top\": 1024",
       "x.json: phase 'setup' has an unknown statistic 'allocated_bytes.top'"},
      {"\"peak\": 1024", "\"peak\": \"1024\"",
       "x.json: phases[0].allocated_bytes.peak: expected a whole number of at least 0, got \"1024\""},
      {"{\"phase\"", "1, {\"phase\"", "x.json: phases[0]: expected an object, got 1"},
  };
  for (const Case& c : cases) {
    const std::string log = recording(kLog, replaced(kHead, c.from, c.to));
    EXPECT_EQ(without_folder(error_of([&] { rerun_allocations({log}); })).substr(0, std::strlen(c.message)),
              c.message);
  }
  EXPECT_EQ(error(kLog, "[]"), "x.json: expected an object, got []");
  EXPECT_EQ(error(kLog, "{"),
            "x.json: JSON syntax error at byte 1 of 1: expected a string as key, got the end of the text; a "
            "measurement is what `metaprof run --json` writes, or a recording (docs/how_to/check.md)");
}

TEST_F(Recordings, UnreadableFilesAreNamed) {
  const std::string log = recording(kLog);
  const auto error_reading = [&](const fs::path& path) {
    return without_folder(error_of([&] { read_recording(path); }));
  };
  EXPECT_EQ(error_reading(folder_ / "none.log.gz"), "none.log.gz: no such file");
  EXPECT_EQ(error_reading(folder_), folder_.string() + ": is a folder, expected the log of a recording");
  write("y.log.gz", gzip(kLog));
  EXPECT_EQ(error_reading(folder_ / "y.log.gz"),
            "y.json: no such file; a recording's configuration and statistics stand in the .json beside "
            "its log");
  write("y.txt", kLog);
  EXPECT_EQ(error_reading(folder_ / "y.txt"),
            "y.txt: a recording's log is called X.log.gz, and X.json stands beside it");

  const std::string packed = gzip(kLog);
  write("x.log.gz", packed.substr(0, packed.size() / 2));
  EXPECT_EQ(error_reading(log), "x.log.gz:1: the compressed data end too early; the file is truncated");
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // in the checksum
  write("x.log.gz", damaged);
  EXPECT_EQ(error_reading(log), "x.log.gz:1: the compressed data are damaged: incorrect data check");
}

TEST_F(Recordings, ReplayFindsNoDifferenceInAnEqualOne) {
  const RerunResult result = rerun_allocations({recording(kLog)});
  EXPECT_TRUE(result.all_equal());
  EXPECT_EQ(result.recordings, 1u);
  EXPECT_EQ(result.requests, 2u);
  EXPECT_EQ(result.phases, 1u);
}

TEST_F(Recordings, ReplayNamesWhatDiffers) {
  using Lines = std::vector<std::string>;
  // 100 -> 512 bytes, so the second block begins 0x200 after the first.
  EXPECT_EQ(differences(replaced(kLog, "+ fffe000200 512", "+ fffe000400 512")),
            (Lines{"6 address: + fffe000400 512 / + fffe000200 512"}));
  EXPECT_EQ(differences(replaced(kLog, "S fffe000000 2097152", "S fffe000000 20971520")),
            (Lines{"3 segment: S fffe000000 20971520 / S fffe000000 2097152"}));
  EXPECT_EQ(differences(replaced(kLog, "S fffe000000 2097152\n", "")),
            (Lines{"3 segment: nothing / S fffe000000 2097152"}));
  EXPECT_EQ(differences(replaced(kLog, "- fffe000000\n", "- fffe000000\nR fffe000000 2097152\n")),
            (Lines{"8 segment: R fffe000000 2097152 / nothing"}));
  EXPECT_EQ(differences(replaced(kLog, "- fffe000000\n", "- fffe000000\n! oom 4096\n")),
            (Lines{"8 out of memory: ! oom 4096 / + fffe000400 4096",
                   "8 allocated_bytes.all.peak of phase 'setup': 1024 / 4608"}));
  EXPECT_EQ(differences(kLog, replaced(kHead, "104857600", "1048576")).front(),
            "3 segment: S fffe000000 2097152 / nothing");
  EXPECT_EQ(differences(kLog, replaced(kHead, "\"current\": 512", "\"current\": 1024")),
            (Lines{"7 allocated_bytes.all.current of phase 'setup': 1024 / 512"}));
  EXPECT_EQ(
      differences(kLog, replaced(kHead, "\"num_ooms\": 0", "\"num_ooms\": 0, \"out_of_memory\": \"CUDA\""))
          .front()
          .substr(0, 42),
      "7 message of phase 'setup': CUDA / CUDA ou");
}

TEST_F(Recordings, ReplayStopsAfterManyDifferences) {
  std::string log = "# phase setup\nS fffe000000 2097152\n";
  for (int i = 0; i < 100; ++i) log += "+ " + std::to_string(1000 + i) + " 512\n";
  const RerunResult result = rerun_allocations({recording(log)});
  EXPECT_EQ(result.differences.size(), kMostDifferences);
  EXPECT_EQ(result.equal, 0u);
}

// What the program did between two phases is in the log of the earlier one.
TEST_F(Recordings, APhaseMayEndBeforeTheNextBegins) {
  const std::string head = replaced(kHead, "]}", R"(, {"phase": "forward", "step": 0, "num_ooms": 0}]})");
  const std::string log = std::string(kLog) + "+ fffe000000 512\n# phase forward step 0\n";
  const RerunResult result = rerun_allocations({recording(log, head)});
  EXPECT_TRUE(result.all_equal());
  EXPECT_EQ(result.phases_ended_early, 1u);
}

TEST_F(Recordings, TheRecordedTrainingStepsAreEqual) {
  for (const char* name : {"mlp", "tiny-llama.adagrad.foreach.steps2", "vit-b-16.mem2500", "gpt2.mem1000",
                           "resnet50.expandable-segments-true", "streams-and-pools"}) {
    const RerunResult result = rerun_allocations({std::string("tests/data/recordings/") + name + ".log.gz"});
    EXPECT_TRUE(result.all_equal()) << name;
    for (const RerunDifference& d : result.differences) {
      ADD_FAILURE() << d.file << ":" << d.line << " " << d.what << ": " << d.expected << " / " << d.got;
    }
  }
}

// Recordings with a line less or a byte changed are refused or differ, and nothing worse happens.
TEST_F(Recordings, ADamagedLogDoesNoHarm) {
  const std::string log = recording("");
  write("x.json", read_file("tests/data/recordings/streams-and-pools.json"));
  std::string text;
  {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
        gzopen("tests/data/recordings/streams-and-pools.log.gz", "rb"), gzclose);
    char chunk[4096];
    for (int n; (n = gzread(file.get(), chunk, sizeof chunk)) > 0;)
      text.append(chunk, static_cast<std::size_t>(n));
  }
  ASSERT_GT(text.size(), 10'000u);
  std::uint32_t seed = 1;
  int refused = 0, differing = 0;
  for (int i = 0; i < 150; ++i) {
    const auto random = [&] { return seed = seed * 1664525 + 1013904223, seed >> 8; };
    std::string damaged = text;
    const std::size_t at = random() % damaged.size();
    if (i % 2 == 0) {
      damaged[at] = "0123456789abcdef +-cSRMU!#s.p\n"[random() % 30];
    } else {
      const std::size_t begin = damaged.rfind('\n', at) + 1;
      damaged.erase(begin, damaged.find('\n', at) + 1 - begin);
    }
    write("x.log.gz", gzip(damaged));
    try {
      differing += rerun_allocations({log}).all_equal() ? 0 : 1;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 15);
  EXPECT_GT(differing, 15);
}

// All of them, or the part that is in the checkout.
TEST(AllRecordings, AreEqual) {
  const EvidenceFolder evidence = evidence_folder();
  std::vector<fs::path> folders{evidence.steps};
  if (evidence.whole) folders.push_back(evidence.planned);
  std::vector<std::string> logs;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().string().ends_with(".log.gz")) logs.push_back(entry.path().string());
    }
  }
  const RerunResult result = rerun_allocations(logs);
  EXPECT_GT(result.recordings, evidence.whole ? 200u : 60u);
  EXPECT_EQ(result.equal, result.recordings);
  for (const RerunDifference& d : result.differences) {
    ADD_FAILURE() << d.file << ":" << d.line << " " << d.what << ": " << d.expected << " / " << d.got;
  }
}

}  // namespace
}  // namespace metaprof
