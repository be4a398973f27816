// The texts inside a .pt2 file: operator names, module stacks, stack traces.

#include <gtest/gtest.h>

#include "program/pt2/context.h"

namespace metaprof {
namespace {

TEST(OpName, FollowsTheDispatchersSpelling) {
  EXPECT_EQ(op_name_of("torch.ops.aten.add.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(op_name_of("torch.ops.aten.mm.default"), "aten::mm");
  EXPECT_EQ(op_name_of("torch.ops.aten.to.dtype_layout"), "aten::to.dtype_layout");
  EXPECT_EQ(op_name_of("torch.ops.aten.__and__.Tensor"), "aten::__and__.Tensor");
  EXPECT_EQ(op_name_of("torch.ops.higher_order.cond"), "higher_order::cond");
  EXPECT_EQ(op_name_of("torch.ops.mylib.myop.default"), "mylib::myop");
  EXPECT_EQ(op_name_of("_operator.mul"), "_operator::mul");
  EXPECT_EQ(op_name_of("torch.sym_max"), "torch::sym_max");
  EXPECT_EQ(op_name_of("strange"), "strange");
  EXPECT_EQ(op_name_of("torch.ops.strange"), "strange");
  EXPECT_EQ(op_name_of(""), "");
}

TEST(ModuleStack, HasKeysPathsAndTypesOutermostFirst) {
  const auto frames = parse_module_stack(
      "L__self__,,zoo.Net;L__self__model,model,torch.nn.modules.container.Sequential;L__self__model.0@1,"
      "model.0,"
      "torch.nn.Linear");
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], (ModuleCall{"", "zoo.Net", "L__self__"}));
  EXPECT_EQ(frames[1], (ModuleCall{"model", "torch.nn.modules.container.Sequential", "L__self__model"}));
  EXPECT_EQ(frames[2], (ModuleCall{"model.0", "torch.nn.Linear", "L__self__model.0@1"}));
}

TEST(ModuleStack, PathsMayHoldCommasBlanksAndSemicolons) {
  const auto frames = parse_module_stack("k,a,b c,m.A;k2,x;y,m.B;k3,z,m.C");
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].path, "a,b c");
  EXPECT_EQ(frames[1].path, "x;y");
  EXPECT_EQ(frames[2].path, "z");
}

TEST(ModuleStack, TheRootThatStrictExportsInsertIsStripped) {
  const auto frames =
      parse_module_stack("1,_export_root,m.Net;2,_export_root.a.0,m.Linear;3,_export_rooted,m.X");
  EXPECT_EQ(frames.at(0).path, "");
  EXPECT_EQ(frames.at(1).path, "a.0");
  EXPECT_EQ(frames.at(2).path, "_export_rooted");
}

TEST(ModuleStack, NonsenseHasNoFrames) {
  for (const char* text : {"", ";", ",", "a,b", "a;b;c", ";;,;", ";;;;;;"})
    EXPECT_TRUE(parse_module_stack(text).empty()) << text;
}

TEST(StackTrace, HasFilesLinesFunctionsAndCode) {
  const auto frames = parse_stack_trace(
      "  File \"zoo.py\", line 186, in forward\n    logits = self.model(\n        input_ids).logits\n"
      "  File \"transformers/models/gpt2.py\", line 191, in <lambda>\n    query = query.view(shape)\n");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], (SourceLine{"zoo.py", "forward", "logits = self.model(", 186}))
      << "the first line only";
  EXPECT_EQ(frames[1],
            (SourceLine{"transformers/models/gpt2.py", "<lambda>", "query = query.view(shape)", 191}));
}

TEST(StackTrace, FramesWithoutCodeAndOtherTextAreTaken) {
  const auto frames =
      parse_stack_trace("Traceback:\nFile \"a b.py\", line 7, in f\nFile \"c.py\", line 8, in g\n\n    x()");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], (SourceLine{"a b.py", "f", "", 7}));
  EXPECT_EQ(frames[1], (SourceLine{"c.py", "g", "x()", 8}));
  EXPECT_TRUE(parse_stack_trace("no frames here").empty());
  EXPECT_TRUE(parse_stack_trace("File \"unfinished").empty());
  EXPECT_EQ(parse_stack_trace("File \"a.py\", line 99999999999999999999, in f").at(0).line, 0);
}

}  // namespace
}  // namespace metaprof
