#include "meta/trace/text.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

// One line of everything; as the writer spells it.
constexpr std::string_view kEverything = R"(parameter fc.weight f32[3,4]g@1 = head.weight
buffer "odd name" i64[]@2
# phase setup
+ 1 48 parameter
+ 2 8 buffer
+ 3 4 input device=cpu
# pause
# phase forward step 0
# enter
# enter fc
> aten::linear f32[8,4]@0 f32[3,4]g@1 None composite
> aten::mm f32[8,4]@0 f32[3,4]g@1
+ 4 96 activation
< f32[8,3]g@4 counted=192 moved=272
node #1 AccumulateGrad seq=18446744073709551615
node #2 MmBackward0 call=2 seq=1 -> 0 #1
save 1 MmBackward0#2
<
# leave fc
> mylib::custom f32[]@h3 unmodelled
storage 5 0 activation
< f32[0]@5 own=4
# leave
# phase backward step 0 micro 1
> evaluate MmBackward0#2
> aten::t phase=recompute
<
+ 6 48 temporary s1 name="cuBLAS workspace"
release 1 MmBackward0#2
<
category 6 gradient
wait 1 0
record_stream 6 2
- 6
- 4
loss MmBackward0#2
loss 0
)";

std::string message_of(std::string_view text) {
  try {
    parse_trace(text, "t");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TraceText, WhatIsWrittenIsReadAndWrittenAgain) {
  EXPECT_EQ(to_text(parse_trace(kEverything)), kEverything);
}

TEST(TraceText, ReadsWhatLinesSay) {
  const Trace trace = parse_trace(kEverything);
  ASSERT_EQ(trace.parameters.size(), 2u);
  EXPECT_EQ(trace.parameters[0].names, (std::vector<std::string>{"fc.weight", "head.weight"}));
  EXPECT_TRUE(trace.parameters[0].requires_grad);
  EXPECT_EQ(trace.parameters[1].names[0], "odd name");
  EXPECT_TRUE(trace.parameters[1].buffer);
  EXPECT_EQ(trace.parameters[1].dtype, DType::i64);

  ASSERT_EQ(trace.storages.size(), 7u);
  EXPECT_EQ(trace.storages[3].device, kHost);
  EXPECT_EQ(trace.storages[4].device, (Device{DeviceType::cuda, 0}));
  EXPECT_EQ(trace.storages[4].bytes.count, 96);
  EXPECT_EQ(trace.text(trace.storages[6].name), "cuBLAS workspace");

  ASSERT_EQ(trace.calls.size(), 4u);
  const CallRecord& mm = trace.calls[1];
  EXPECT_EQ(trace.text(mm.op), "aten::mm");
  EXPECT_EQ(mm.counted.count, 192);
  EXPECT_EQ(mm.moved.count, 272);
  ASSERT_EQ(mm.inputs, 2);
  ASSERT_EQ(mm.outputs, 1);
  const TensorRecord& weight = trace.tensors[mm.first_tensor + 1];
  EXPECT_EQ(to_string(trace.shape(weight)), "[3,4]");
  EXPECT_EQ(weight.storage, 1u);
  EXPECT_TRUE(weight.requires_grad);
  EXPECT_TRUE(trace.tensors[trace.calls[2].first_tensor].on_host);

  ASSERT_EQ(trace.nodes.size(), 2u);
  EXPECT_EQ(trace.nodes[1].edge_count, 2);
  EXPECT_EQ(trace.edges[trace.nodes[1].first_edge + 1], 1u);
  EXPECT_EQ(trace.losses, (std::vector<uint32_t>{2, 0}));
}

// What a line leaves out comes from the lines that are open around it.
TEST(TraceText, TheLinesAroundSayModuleDepthPhaseAndNode) {
  const Trace trace = parse_trace(kEverything);
  const auto module_of = [&](uint32_t text) { return trace.text(text); };
  EXPECT_EQ(module_of(trace.calls[1].module), "fc");
  EXPECT_EQ(trace.calls[0].depth, 0);
  EXPECT_EQ(trace.calls[1].depth, 1);
  EXPECT_EQ(trace.calls[1].phase, Phase::forward);
  EXPECT_EQ(trace.storages[4].call, 2u);
  EXPECT_EQ(module_of(trace.storages[4].module), "fc");
  EXPECT_EQ(trace.storages[1].call, 0u);
  EXPECT_EQ(module_of(trace.calls[2].module), "");
  EXPECT_EQ(trace.calls[3].node, 2u);
  EXPECT_EQ(trace.calls[3].phase, Phase::recompute);
  EXPECT_EQ(module_of(trace.calls[3].module), "fc") << "a node's calls belong to the module that made it";
}

TEST(TraceText, CommentsBlankLinesAndBlanksDoNotCount) {
  const Trace trace = parse_trace("\n  // nothing\n\t+  1   512\tactivation   // the first\r\n- 1");
  EXPECT_EQ(to_text(trace), "+ 1 512 activation\n- 1\n");
}

TEST(TraceText, NamesWithAnyCharacterComeBack) {
  Trace trace;
  for (const char* name : {"a b", "\"", "\\", "\n\t\r", "\x01\x7f", "größe", "// no comment", "k=v"})
    trace.parameters.push_back({.names = {name}, .sizes = {}, .storage = 0});
  const Trace read = parse_trace(to_text(trace));
  ASSERT_EQ(read.parameters.size(), trace.parameters.size());
  for (size_t i = 0; i < read.parameters.size(); ++i)
    EXPECT_EQ(read.parameters[i].names, trace.parameters[i].names);
}

TEST(TraceText, ALineThatIsNoEventIsNamed) {
  EXPECT_EQ(
      message_of("+ 1 8 input\nalloc 2 8\n"),
      "t:2: expected parameter, buffer, '# phase', '# enter', '# leave', +, -, storage, >, <, node, save, "
      "release, category, wait, record_stream or loss, got 'alloc'");
}

struct Malformed {
  const char* text;
  const char* message;
};
class MalformedTraceText : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedTraceText, SaysWhereAndWhatIsExpected) {
  EXPECT_EQ(message_of(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, MalformedTraceText,
    testing::Values(
        Malformed{"+ 2 8 input", "t:1: expected 1, the number of the next storage, got '2'"},
        Malformed{"+ 1", "t:1: expected a number of bytes, got the end of the line"},
        Malformed{"+ 1 -8 input", "t:1: expected a number of bytes, got '-8'"},
        Malformed{"+ 1 99999999999999999999 input",
                  "t:1: expected a number of bytes, got '99999999999999999999'"},
        Malformed{"+ 1 8 cache",
                  "t:1: expected parameter, buffer, input, activation, gradient, optimizer_state, temporary, "
                  "workspace, cached_copy or kept, got 'cache'"},
        Malformed{"+ 1 8 input on=cpu",
                  "t:1: expected a stream as s1, call=, module=, name=, device= or estimated, got 'on=cpu'"},
        Malformed{"+ 1 8 input s99999", "t:1: expected a number up to 65535, got 's99999'"},
        Malformed{"+ 1 8 input device=cuda:1000", "t:1: expected a number up to 127, got 'device=cuda:1000'"},
        Malformed{"+ 1 8 input call=1", "t:1: expected the number of an earlier call, got 'call=1'"},
        Malformed{"storage 1 0 input s1", "t:1: a storage without an event has no stream"},
        Malformed{"- 1", "t:1: storage 1 does not exist yet; the last one is 0"},
        Malformed{"+ 1 8 input\n- 1\n- 1", "t:3: storage 1 is freed, but it is not alive here"},
        Malformed{"<", "t:1: '<' without its '>'"},
        Malformed{"> aten::mm\n> aten::t\n<\n", "t:4: the text ends, but '> aten::mm' has no '<'"},
        Malformed{"> aten::mm f32[2]@1", "t:1: storage 1 does not exist yet; the last one is 0"},
        Malformed{"> aten::mm f33[2]@0", "t:1: expected a dtype before '[', got 'f33[2]@0'"},
        Malformed{"> aten::mm f32[2,]@0", "t:1: expected sizes as [2,3], got 'f32[2,]@0'"},
        Malformed{"> aten::mm f32[-2]@0", "t:1: expected sizes as [2,3], got 'f32[-2]@0'"},
        Malformed{"> aten::mm f32[2]",
                  "t:1: expected a tensor as DTYPE[SIZES]@STORAGE or None, got 'f32[2]'"},
        Malformed{"> aten::mm f32[2]x@0", "t:1: expected 'g' or nothing before '@', got 'f32[2]x@0'"},
        Malformed{"> aten::mm fast",
                  "t:1: expected a tensor, module=, phase=, node=, depth=, kernel=, composite, unmodelled or "
                  "assumed, "
                  "got 'fast'"},
        Malformed{"> aten::mm kernel=fast",
                  "t:1: expected kernel= and other, cudnn, attention or depthwise, got 'kernel=fast'"},
        Malformed{"> aten::mm node=1", "t:1: expected the number of an earlier node, got 'node=1'"},
        Malformed{"> aten::mm phase=now", "t:1: expected phase= and the name of a phase, got 'phase=now'"},
        Malformed{"> aten::mm\n< flops=3", "t:2: expected a tensor, counted=, own= or moved=, got 'flops=3'"},
        Malformed{"> evaluate #1", "t:1: node #1 does not exist yet; a line 'node #1 NAME' must come first"},
        Malformed{"node #1 A\n> evaluate B#1", "t:2: expected A#1, got 'B#1'"},
        Malformed{"node #2 A", "t:1: expected #1, the number of the next node, got '#2'"},
        Malformed{"node #1 A -> 0 #3\n", "t:1: node #3 does not exist"},
        Malformed{"node #1 A call=1\n", "t:1: call 1 does not exist"},
        Malformed{"node #1 A => #1", "t:1: expected module=, call=, seq=, inner= or '->', got '=>'"},
        Malformed{"+ 1 8 input\nsave 1 3", "t:2: expected a node as NAME#NUMBER, got '3'"},
        Malformed{"# step 3", "t:1: expected phase, pause, enter or leave, got 'step'"},
        Malformed{"# phase warmup",
                  "t:1: expected setup, forward, backward, recompute, optimizer or zero_grad, got 'warmup'"},
        Malformed{"# phase forward", "t:1: expected 'step' and its number, got the end of the line"},
        Malformed{"# phase forward step 0 batch 1",
                  "t:1: expected 'micro' and its number, or the end of the line, got "
                  "'batch'"},
        Malformed{"# enter a\n# leave b",
                  "t:2: '# leave b' without its '# enter'; the last one that is open is 'a'"},
        Malformed{"# leave b", "t:1: '# leave b' without its '# enter'; none is open"},
        Malformed{"parameter w f32[2]@7", "t:1: storage 7 does not exist"},
        Malformed{"parameter w f32[2]@0 tied", "t:1: expected the end of the line, got 'tied'"},
        Malformed{"wait 1", "t:1: expected the number of a stream, got the end of the line"},
        Malformed{"loss x", "t:1: expected a node as NAME#NUMBER, got 'x'"},
        Malformed{"parameter \"w", "t:1: a quotation mark is not closed"},
        Malformed{"parameter \"\\q\"",
                  "t:1: a backslash in quotes must be followed by one of \" \\ n t r xHH"}));

// Cut anywhere, a text is either read or refused with a message.
TEST(TraceText, EveryPrefixEndsWell) {
  for (size_t length = 0; length < kEverything.size(); ++length) {
    const std::string message = message_of(kEverything.substr(0, length));
    EXPECT_TRUE(message == "no error" || message.starts_with("t:")) << length << ": " << message;
  }
}

// Any byte replaced by any of these: the same.
TEST(TraceText, EveryReplacedByteEndsWell) {
  for (size_t at = 0; at < kEverything.size(); ++at) {
    for (const char c : {'\0', '\n', ' ', '"', '#', '-', '9', '@', '[', ']', '\xff'}) {
      std::string text(kEverything);
      text[at] = c;
      const std::string message = message_of(text);
      EXPECT_TRUE(message == "no error" || message.starts_with("t:")) << at << ": " << message;
    }
  }
}

}  // namespace
}  // namespace metaprof
