#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/sections/peak_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

TEST(Format, BytesHaveTheLargestUnitWithADigitBeforeThePoint) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(945981952), "902.2 MiB");  // 945981952 / 2^20 = 902.16
  EXPECT_EQ(human_bytes(150121480192), "139.8 GiB");
  EXPECT_EQ(human_bytes(int64_t{3} << 42), "12.0 TiB");
  EXPECT_EQ(human_bytes(-2048), "-2.0 KiB");
}

TEST(Format, LongNumbersAreGrouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(945981952), "945 981 952");
  EXPECT_EQ(grouped(-123456), "-123 456");
}

TEST(Format, AColumnsUnitFitsItsLargestNumber) {
  EXPECT_EQ(unit_for_bytes(0).name, "B");
  EXPECT_EQ(unit_for_bytes(99999).name, "B");
  EXPECT_EQ(unit_for_bytes(100000).name, "KiB");
  EXPECT_EQ(unit_for_bytes(709921540).name, "MiB");
  EXPECT_EQ(unit_for_flops(116100694016).name, "GFLOP");
  EXPECT_EQ(unit_for_flops(1500).name, "FLOP");
}

TEST(Format, NumbersInAUnit) {
  EXPECT_EQ(in_unit(0, unit_for_bytes(709921540)), "0") << "nothing at all";
  EXPECT_EQ(in_unit(1, unit_for_bytes(709921540)), "0.0") << "little";
  EXPECT_EQ(in_unit(709921540, unit_for_bytes(709921540)), "677.0");
  EXPECT_EQ(in_unit(116100694016, unit_for_flops(116100694016)), "116.10");
}

TEST(TextTable, ColumnsLineUp) {
  TextTable table;
  table.column("name", TextTable::Align::left);
  table.column("size, B");
  table.row({"größe", "12"});
  table.row({"x", "123456789"});
  EXPECT_EQ(table.text(2),
            "  name     size, B\n"
            "  ----------------\n"
            "  größe         12\n"
            "  x      123456789\n");
}

TextTable wide_table() {
  TextTable table;
  table.column("module", TextTable::Align::left);
  table.optional_column("bytes");
  table.optional_column("nothing");
  table.optional_column("FLOPs");
  table.row({"model.layers.*.self_attn.q_proj", "12", "0", "345"});
  table.row({"head", "1", "0", "6"});
  return table;
}

TEST(TextTable, IsAsWideAsItNeedsWithoutAWidth) {
  EXPECT_EQ(wide_table().text(),
            "module                           bytes  nothing  FLOPs\n"
            "------------------------------------------------------\n"
            "model.layers.*.self_attn.q_proj     12        0    345\n"
            "head                                 1        0      6\n");
}

// First words are cut as far as they can be read, then zeros go, then the last column, then more of the words.
TEST(TextTable, FitsAWidth) {
  EXPECT_EQ(wide_table().text(0, 44),
            "module                        bytes  FLOPs\n"
            "------------------------------------------\n"
            "model.layers.…lf_attn.q_proj     12    345\n"
            "head                              1      6\n"
            "too narrow for: nothing (--width 0 shows all)\n");
  EXPECT_EQ(wide_table().text(2, 24),
            "  module           bytes\n"
            "  ----------------------\n"
            "  model.l….q_proj     12\n"
            "  head                 1\n"
            "  too narrow for: nothing; FLOPs (--width 0 shows all)\n");
}

TEST(CategoryTable, SmallOnesAreOneRow) {
  PeakMoment peak;
  peak.bytes = {1000};
  peak.by_category[static_cast<size_t>(Category::parameter)] = {994};
  peak.by_category[static_cast<size_t>(Category::input)] = {4};
  peak.by_category[static_cast<size_t>(Category::kept)] = {2};
  const auto rows = [&](double least) {
    const std::string text = category_table(peak, least);
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(rows(0), 2 + 3 + 1);
  EXPECT_EQ(rows(0.005), 2 + 2 + 1);
  EXPECT_NE(category_table(peak, 0.005).find("smaller ones"), std::string::npos);
}

}  // namespace
}  // namespace metaprof
