// Files of weights: what their headers say, beside what models have, and files that are broken.

#include <gtest/gtest.h>

#include "core/error.h"
#include "estimate/weights.h"
#include "program/safetensors/inventory.h"
#include "reports/catalog/weights_report.h"

namespace metaprof {
namespace {

const std::string kFolder = "tests/data/weights/";

TEST(Weights, AreCountedByType) {
  const WeightsReport report = inspect_weights(kFolder + "mixed.safetensors", "");
  EXPECT_EQ(report.all().tensors, 11);
  EXPECT_EQ(report.all().elements, 42222);
  EXPECT_EQ(report.all().bytes, 50799);  // 32768 + 44 + 1024 + 64 + 256 + 16384 + 256 + 3
  auto by_dtype = report.by_dtype();
  EXPECT_EQ(by_dtype["F8_E4M3"].bytes, 32768);
  EXPECT_EQ(by_dtype["F32"].elements, 11);  // among them one without dimensions, and one without elements
  EXPECT_EQ(by_dtype["BOOL"].bytes, 3);
  EXPECT_EQ(report.metadata.at("note"), "mixed dtypes");
  EXPECT_TRUE(report.warnings.empty());
}

TEST(Weights, NamesAreUnescaped) {
  const WeightsReport report = inspect_weights(kFolder + "bare.safetensors", "");
  ASSERT_EQ(report.tensors.size(), 3u);
  EXPECT_EQ(report.tensors[0].name, "a\"b\\c");
  EXPECT_EQ(report.tensors[1].name, "encoder.é.weight");
}

// The head is tied to the embedding: one of the two names is stored.
TEST(Weights, OfATiedModelAgreeWithItsConfiguration) {
  const WeightsReport report = inspect_weights(kFolder + "llama-3.2-1b", "");
  EXPECT_EQ(report.all().elements, 1235814400);
  ASSERT_EQ(report.comparisons.size(), 1u);
  const WeightsComparison& comparison = report.comparisons[0];
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.stored, 1235814400);
  EXPECT_TRUE(comparison.missing.empty() && comparison.unexpected.empty());
  EXPECT_EQ(comparison.tied,
            (std::vector<std::vector<std::string>>{{"model.embed_tokens.weight", "lm_head.weight"}}));
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_TRUE(report.warnings[0].ends_with("the data are missing; the header alone is there"));
}

TEST(Weights, OfSeveralFilesAreOneModel) {
  const WeightsReport report = inspect_weights(kFolder + "tinyllama-1.1b", "");
  EXPECT_EQ(report.files.size(), 3u);
  EXPECT_EQ(report.all().elements, 1100048384);
  EXPECT_EQ(report.all().bytes, 4400193536);
  ASSERT_EQ(report.comparisons.size(), 1u);
  EXPECT_TRUE(report.comparisons[0].agrees());
}

TEST(Weights, OfAnotherModelDiffer) {
  const WeightsReport report =
      inspect_weights(kFolder + "tinyllama-1.1b", kFolder + "llama-3.2-1b/config.json");
  ASSERT_EQ(report.comparisons.size(), 1u);
  const WeightsComparison& comparison = report.comparisons[0];
  EXPECT_FALSE(comparison.agrees());
  EXPECT_TRUE(comparison.missing.empty());
  EXPECT_FALSE(comparison.unexpected.empty());  // layers 16 to 21
  EXPECT_NE(weights_text(report, false, 0).find("model.norm.weight: [2048] in the file") == std::string::npos,
            false);
}

TEST(Weights, ThatAreTruncatedAreShownWithAWarning) {
  const WeightsReport report = inspect_weights(kFolder + "st_truncated.safetensors", "");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("truncated"), std::string::npos);
  EXPECT_TRUE(inspect_weights(kFolder + "st_ok.safetensors", "").warnings.empty());
}

// Each with what its message holds; the message is one line that begins with the file.
TEST(Weights, ThatAreBrokenAreRefused) {
  const std::pair<const char*, const char*> kBroken[] = {{"short_length", "too short"},
                                                         {"length_past_end", "header is said"},
                                                         {"huge_length", "header is said"},
                                                         {"not_json", "JSON"},
                                                         {"offset_mismatch", "shape"},
                                                         {"overlap", "overlap"},
                                                         {"hole", "hole"},
                                                         {"bad_dtype", "dtype"},
                                                         {"shape_overflow", "64 bits"},
                                                         {"negative_shape", "negative"},
                                                         {"st_short", "short"},
                                                         {"st_header_too_long", "header"},
                                                         {"st_header_beyond_file", "header"},
                                                         {"st_not_json", "JSON"},
                                                         {"st_overlap", "overlap"},
                                                         {"st_size_mismatch", "shape"},
                                                         {"st_reversed", "offset"},
                                                         {"st_dtype", "dtype"}};
  for (const auto& [name, words] : kBroken) {
    const std::string file = kFolder + "broken/" + name + ".safetensors";
    try {
      (void)read_weights(file);
      FAIL() << file << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file + ": ")) << message;
      EXPECT_NE(message.find(words), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace metaprof
