#pragma once
// What all fuzz targets share. libFuzzer calls LLVMFuzzerTestOneInput with texts that it makes of those in corpus/; a
// parser may refuse a text with an Error and nothing else.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace metaprof {

/// What a parser does with one text.
template <class Parse>
int fuzz(const uint8_t* bytes, size_t count, Parse parse) {
  try {
    parse(std::string(reinterpret_cast<const char*>(bytes), count));
  } catch (const Error& error) {
    // A message is one line.
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
  }
  return 0;
}

}  // namespace metaprof
