// What is alive at the peak, in groups.

#include "reports/sections/peak_contributors.h"

#include <gtest/gtest.h>

#include "reports/sections/folded_module.h"

namespace metaprof {
namespace {

LargeStorage held(int64_t bytes, Category category, const std::string& name, const std::string& op,
                  const std::string& module) {
  LargeStorage storage;
  storage.bytes = {bytes};
  storage.category = category;
  storage.name = name;
  storage.op = op;
  storage.module = module;
  return storage;
}

std::vector<std::string> names_of(const std::vector<PeakContributor>& peak_contributors) {
  std::vector<std::string> names;
  for (const PeakContributor& contributor : peak_contributors) names.push_back(contributor.what);
  return names;
}

TEST(PeakContributors, EqualLayersAreOneGroupHoweverDeepTheyLie) {
  const std::string layers = "model.base_model.model.model.layers.";
  const auto peak_contributors = peak_contributors_of(
      {held(10, Category::activation, "", "aten::mm", layers + "0.mlp.up.lora_A.default"),
       held(20, Category::activation, "", "aten::mm", layers + "1.mlp.up.lora_A.default"),
       held(5, Category::activation, "", "aten::silu", layers + "1.mlp.act"),
       held(7, Category::activation, "", "aten::mm", "a.b.c.d.e")},
      {});
  EXPECT_EQ(
      names_of(peak_contributors),
      (std::vector<std::string>{"2 × model.base_model.model.model.layers.*.mlp: mm, silu", "a.b.c: mm"}));
  EXPECT_EQ(peak_contributors[0].bytes.count, 35);
}

// 30 of 40 bytes are those of two layers.
TEST(PeakContributors, GradientsAndStatesAreThoseOfTheirParameters) {
  for (const auto& [category, what] :
       {std::pair(Category::gradient, "gradients of 3 parameters"),
        std::pair(Category::optimizer_state, "optimizer state of 3 parameters"),
        std::pair(Category::parameter, "3 parameters")}) {
    const auto peak_contributors =
        peak_contributors_of({held(10, category, "m.h.0.mlp.weight", "aten::mm", ""),
                              held(20, category, "m.h.1.mlp.weight", "aten::mm", ""),
                              held(10, category, "head.weight", "aten::mm", "")},
                             {});
    EXPECT_EQ(names_of(peak_contributors),
              (std::vector<std::string>{std::string(what) + " (75 %: 2 × m.h.*.mlp)"}));
  }
}

TEST(PeakContributors, PathsAreFoldedInLists) {
  EXPECT_EQ(folded_modules({"m.h.0.attn", "m.h.1.attn", "m.head", "m.h.2.attn", ""}),
            "3 × m.h.*.attn, m.head, (root)");
}

TEST(PeakContributors, LinesAreThoseOfTheLargest) {
  const SourceLines lines{.by_call = {{{"h.1", "aten::mm"}, "model.py:7"}},
                          .by_module = {{"h.0", "model.py:5"}}};
  const auto peak_contributors = peak_contributors_of({held(10, Category::activation, "", "aten::mm", "h.0"),
                                                       held(20, Category::activation, "", "aten::mm", "h.1")},
                                                      lines);
  EXPECT_EQ(peak_contributors.at(0).line, "model.py:7");
}

}  // namespace
}  // namespace metaprof
