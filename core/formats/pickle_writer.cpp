#include "core/formats/pickle_writer.h"

#include "core/utf8.h"

namespace metaprof {
namespace {

void append_little_endian(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

}  // namespace

// BINPUT and BINGET take a byte, LONG_BINPUT and LONG_BINGET four (pickletools.py).
void PickleWriter::memo(uint32_t number, bool get) {
  if (number < 256) {
    out_ += get ? 'h' : 'q';
    append_little_endian(out_, number, 1);
  } else {
    out_ += get ? 'j' : 'r';
    append_little_endian(out_, number, 4);
  }
}

void PickleWriter::text(std::string_view text) {
  const auto [found, is_new] = memo_.try_emplace(std::string(text), static_cast<uint32_t>(memo_.size()));
  if (!is_new) return memo(found->second, true);
  const std::string clean = well_formed(text);  // Python refuses anything else
  out_ += 'X';                                  // BINUNICODE
  append_little_endian(out_, clean.size(), 4);
  out_ += clean;
  memo(found->second, false);
}

void PickleWriter::integer(int64_t number) {
  if (number >= 0 && number < 256) {
    out_ += 'K';  // BININT1
    append_little_endian(out_, static_cast<uint64_t>(number), 1);
  } else if (number >= INT32_MIN && number <= INT32_MAX) {
    out_ += 'J';  // BININT
    append_little_endian(out_, static_cast<uint64_t>(number), 4);
  } else {
    out_ += "\x8a\x08";  // LONG1 of eight bytes
    append_little_endian(out_, static_cast<uint64_t>(number), 8);
  }
}

}  // namespace metaprof
