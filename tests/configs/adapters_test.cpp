// LoRA, weights of few bits and caches of keys in models of configurations, against runs of peft 0.19, bitsandbytes 0.50 and
// transformers 5.17 on an emulated H200 (PyTorch 2.11). Bytes are those of torch.cuda's statistics.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "estimate/estimate.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

// Two layers, vocabulary 1024, hidden 256, inner 688, 4 heads of 64, 2 of keys; a head of its own.
constexpr const char* kTiny = "tests/data/configs/adapters/llama.json";

RunOptions options_of(const std::string& precision) {
  RunOptions options;
  options.framework = "2.11";
  options.workspaces = "none";
  options.batch = 2;
  options.sequence = 64;
  options.step.precision = precision_named(precision);
  return options;
}

ProfileReport run(const RunOptions& options, const std::string& model = kTiny) {
  return estimate(read_model(model, options), options).report;
}

std::string message_of(const RunOptions& options, const std::string& model = kTiny) {
  try {
    (void)run(options, model);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

int64_t trainable(const ProfileReport& report) { return report.memory.parameters.trainable.count; }

TEST(Lora, AdaptersAloneTrain) {
  RunOptions options = options_of("fp32");
  options.lora = "r=16,targets=q_proj,v_proj";
  // Per layer: q 16·256 + 256·16, v 16·256 + 128·16.
  EXPECT_EQ(trainable(run(options)), 2 * (16 * 256 + 256 * 16 + 16 * 256 + 128 * 16));
  options.lora = "r=8,targets=all-linear";
  // q and o 256 → 256, k and v 256 → 128, gate and up 256 → 688, down 688 → 256; not the head.
  EXPECT_EQ(trainable(run(options)), 2 * 8 * (2 * 512 + 2 * 384 + 3 * 944));
}

// peft's, of the family; where it has none, somebody must name them.
TEST(Lora, WithoutTargetsTheUsualModulesHaveAdapters) {
  RunOptions options = options_of("fp32");
  options.lora = "r=16,targets=q_proj,v_proj";
  const int64_t named = trainable(run(options));
  options.lora = "r=16";
  EXPECT_EQ(trainable(run(options)), named);
  EXPECT_THROW((void)run(options, "vit-base-patch16-224"), Error);
  try {
    (void)run(options, "vit-base-patch16-224");
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "--lora: targets are missing, as targets=q_proj,v_proj or targets=all-linear; peft has none for this "
        "model");
  }
}

TEST(Lora, WordsThatItDoesNotHaveAreRefused) {
  RunOptions options = options_of("fp32");
  const auto refused = [&](const std::string& lora) {
    options.lora = lora;
    return message_of(options);
  };
  EXPECT_EQ(refused("r=0,targets=q_proj"), "--lora: r=0: expected a number from 1 to 65536");
  EXPECT_EQ(refused("r=x,targets=q_proj"), "--lora: r=x: expected a number from 1 to 65536");
  EXPECT_EQ(refused("dropout=2,targets=q_proj"), "--lora: dropout=2: expected a number from 0 to 1");
  EXPECT_EQ(refused("dtype=bf16,targets=q_proj"), "--lora: dtype=bf16: expected fp32 or model");
  EXPECT_EQ(refused("16"), "--lora: '16' is no KEY=VALUE, as r=16,targets=q_proj,v_proj");
  EXPECT_EQ(refused("targets="), "--lora: targets= names no module");
  EXPECT_TRUE(
      refused("alhpa=3,targets=q_proj").starts_with("--lora: there is no 'alhpa'; there are r, alpha, "));
  EXPECT_EQ(refused("targets=c_attn"),
            "--lora: no linear module of tests/data/configs/adapters/llama.json is called c_attn; there are "
            "q_proj, "
            "k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, lm_head");
}

TEST(Lora, CapturedRunsAndTracesAreRefused) {
  RunOptions options;
  options.lora = "targets=all-linear";
  EXPECT_TRUE(
      message_of(options, "tests/data/captured/run/gan.mp")
          .ends_with("is a run that was captured: add the adapters in its source and capture it again"));
  options.lora.clear();
  options.base_weights = "nf4";
  EXPECT_TRUE(
      message_of(options, "tests/data/captured/run/gan.mp")
          .ends_with("is a run that was captured: load the weights so in its source and capture it again"));
}

TEST(BaseWeights, TakeHalfAByteAndAScaleForEachBlock) {
  RunOptions options = options_of("bf16");
  options.lora = "targets=q_proj";
  const auto bytes = [&](const std::string& word) {
    options.base_weights = word;
    const ProfileReport report = run(options);
    return report.memory.parameters.all.bytes.count + report.memory.parameters.buffers.bytes.count;
  };
  options.base_weights.clear();
  const ProfileReport whole = run(options);
  const int64_t before =
      whole.memory.parameters.all.bytes.count + whole.memory.parameters.buffers.bytes.count;
  // Per layer: q and o 65536 elements, k and v 32768, gate, up and down 176128: 724992 in 7 modules.
  const int64_t elements = 2 * int64_t{724992};
  EXPECT_EQ(bytes("nf4"), before - 2 * elements + elements / 2 + elements / 64 * 4 + int64_t{14} * 16 * 4);
  EXPECT_EQ(bytes("fp4"), bytes("nf4"));
  // 8 bits for each scale, and a scale for each 256 of them: q and o have 4 such blocks, k and v 2, the others 11; two
  // tables and the mean for each module, and a table for all.
  const int64_t blocks = int64_t{2} * (2 * 4 + 2 * 2 + 3 * 11);
  EXPECT_EQ(bytes("nf4-double"), before - 2 * elements + elements / 2 + elements / 64 + blocks * 4 +
                                     int64_t{14} * (16 * 4 + 256 * 4 + 4) + int64_t{256} * 4);
  // A byte, and a scale for each row.
  EXPECT_EQ(bytes("int8"),
            before - 2 * elements + elements + int64_t{2} * (2 * 256 + 2 * 128 + 2 * 688 + 256) * 4);
}

// What the second of three steps held at the end of forward, and its peaks in forward and backward.
struct Measured {
  const char *lora, *base_weights, *precision;
  int batch, sequence;
  int64_t forward, forward_peak, backward_peak;
};
constexpr Measured kMeasured[] = {
    {"r=16,targets=q_proj,v_proj", "", "fp32", 2, 64, 79768576, 80293376, 80817152},
    {"r=16,targets=q_proj,v_proj", "", "bf16", 2, 64, 74226176, 74488832, 74750464},
    {"r=8,alpha=16,dropout=0.1,targets=all-linear", "", "bf16", 2, 64, 77018624, 77743104, 77542912},
    {"r=16,targets=q_proj,v_proj", "", "amp-bf16", 2, 64, 81642496, 81921536, 82167296},
    {"r=16,targets=q_proj,v_proj", "nf4", "bf16", 2, 64, 72150528, 72612864, 72674816},
    {"r=16,targets=q_proj,v_proj", "nf4", "bf16", 8, 512, 159116800, 167505920, 175894016},
    {"r=16,targets=all-linear", "nf4-double", "bf16", 8, 512, 219230720, 231145472, 236007936},
    {"r=16,targets=q_proj,v_proj", "int8", "bf16", 2, 64, 73345536, 74357248, 73869824},
};

TEST(Adapters, TakeWhatTheLibrariesTook) {
  for (const Measured& measured : kMeasured) {
    RunOptions options = options_of(measured.precision);
    options.lora = measured.lora;
    options.base_weights = measured.base_weights;
    options.batch = measured.batch;
    options.sequence = measured.sequence;
    const ProfileReport report = run(options);
    const auto number = [&](Phase phase) {
      for (const auto& row : report.memory.phases.rows)
        if (row.part.phase == phase && row.part.step == 1) return row.numbers.allocated_bytes;
      return AllocatorNumber{};
    };
    const std::string what =
        fmt::format("{} {} {}", measured.lora, measured.base_weights, measured.precision);
    EXPECT_EQ(number(Phase::forward).current, measured.forward) << what;
    EXPECT_EQ(number(Phase::forward).peak, measured.forward_peak) << what;
    EXPECT_EQ(number(Phase::backward).peak, measured.backward_peak) << what;
  }
}

// Peak of one call for two examples behind a cache.
struct MeasuredCall {
  const char *model, *precision;
  int cached, sequence;
  int64_t peak;
};
constexpr MeasuredCall kCalls[] = {
    {"llama", "fp32", 100, 1, 42507776},   {"llama", "bf16", 300, 8, 38825984},
    {"gemma3", "bf16", 100, 1, 39160832},  {"gemma3", "bf16", 20, 4, 38987264},
    {"mistral", "bf16", 100, 1, 37238272}, {"deepseek_v3", "bf16", 100, 1, 37876224},
};

TEST(KeyCache, TakesWhatTheLibraryTook) {
  for (const MeasuredCall& measured : kCalls) {
    RunOptions options = options_of(measured.precision);
    options.step.mode = Mode::inference;
    options.kv_cache = measured.cached;
    options.sequence = measured.sequence;
    const ProfileReport report =
        run(options, fmt::format("tests/data/configs/adapters/{}.json", measured.model));
    EXPECT_EQ(report.memory.phases.peak.allocated_bytes.peak, measured.peak) << measured.model;
  }
}

TEST(Adapters, AreInTheProgramsText) {
  RunOptions options = options_of("bf16");
  options.lora = "r=16,targets=q_proj,v_proj";
  for (const char* word : {"nf4", "int8"}) {
    options.base_weights = word;
    const std::string text = to_text(read_model(kTiny, options).program);
    EXPECT_EQ(to_text(parse_program(text, "text")), text);
  }
}

TEST(KeyCache, IsForInferenceOfDecoders) {
  RunOptions options = options_of("fp32");
  options.kv_cache = 100;
  EXPECT_EQ(message_of(options), "--kv-cache: a cache is for inference: give --mode inference, too");
  options.step.mode = Mode::inference;
  options.step.precision = Precision::amp_bf16;
  EXPECT_EQ(message_of(options), "--kv-cache: takes --precision fp32, bf16 or fp16, as models are served");
  options.step.precision = Precision::bf16;
  EXPECT_TRUE(
      message_of(options, "bert-base")
          .starts_with("--kv-cache: a cache is not built for the family bert; it is for deepseek_v2, "));
  EXPECT_TRUE(
      message_of(options, "tests/data/models/tiny_llama.pt2")
          .starts_with(
              "--kv-cache: tiny_llama: only models of a configuration (config.json) can be given a cache"));
}

TEST(KeyCache, HasEachLayersTokens) {
  RunOptions options = options_of("bf16");
  options.step.mode = Mode::inference;
  options.kv_cache = 32768;
  options.sequence = {};
  const std::vector<CacheRow> rows = run(options, "llama-3.1-8b").kv_cache;
  ASSERT_EQ(rows.size(), 32U);
  EXPECT_EQ(rows[0].tokens, 32769);
  EXPECT_EQ(rows[0].bytes.count,
            int64_t{2} * 2 * 8 * 128 * 32769 * 2);  // both, batch, heads, width, tokens, bf16
}

}  // namespace
}  // namespace metaprof
