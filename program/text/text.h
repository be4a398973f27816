#pragma once
// A program as text: for people to read, to write by hand in tests, and to keep. docs/reference/program.md describes it.
//
//   metaprof program 1
//   parameter weight = %w: f32[4,3] grad
//   input x = %x: f32[2,3]
//   %y: f32[2,4] = aten::linear(%x, %w)
//   %loss: f32[] = aten::mean(%y) drop %y
//   loss = %loss

#include <string>
#include <string_view>

#include "program/program.h"

namespace metaprof {

/// Everything that the program holds, except where it came from (`origin`). What parse_program makes of it has
/// the same text, and runs in the same way.
std::string to_text(const Program& program);

/// `origin`: where the text is from, for messages. Errors: a line that is no line of a program, with its
/// number; a value that is used before it is made, or made twice; sizes that exceed 64 bits.
Program parse_program(std::string_view text, const std::string& origin);

}  // namespace metaprof
