#include "core/formats/gzip_text.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace metaprof {

std::string gzipped(std::string_view text) {
  constexpr int kGzip = 16;  // added to the window's bits: the form of a gzip file
  constexpr size_t kPiece = size_t{1} << 20;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string packed;
  std::string piece(kPiece, '\0');
  do {
    // zlib does not write to what it reads; its counts have 32 bits.
    const auto count = static_cast<uInt>(std::min(text.size(), kPiece));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = count;
    text.remove_prefix(count);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
      packed.append(piece, 0, piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (!text.empty());
  deflateEnd(&stream);
  return packed;
}

}  // namespace metaprof
