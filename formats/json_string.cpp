#include "formats/json_string.h"

#include <fmt/format.h>

#include "formats/utf8.h"

namespace metaprof {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : well_formed(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == '<' || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace metaprof
