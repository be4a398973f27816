#include "core/formats/json_string.h"

#include "core/shown_text.h"

namespace metaprof {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : shown(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace metaprof
