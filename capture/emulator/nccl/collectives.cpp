// Collectives and messages. They are done at once: what they would bring is data, and device memory holds none. Small
// values that the host wrote do arrive: whoever reads one waits for the ranks that send it. Where ranks cannot exchange
// anything (there is no log's folder) every rank is taken to have sent the same.

#include <cstring>
#include <functional>

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/memory/contents.h"
#include "capture/emulator/machine/streams/streams.h"
#include "capture/emulator/nccl/communicator.h"
#include "capture/emulator/nccl/reduction.h"

using namespace metaprof::emulator;
using namespace metaprof::emulator::nccl;

namespace {

// What a rank receives, of what the ranks sent; nothing if it is not known.
using Combine = std::function<Sent(const std::vector<Sent>&)>;

Result begin(const Communicator* communicator, Stream* stream) {
  if (!communicator) return invalid_argument;
  if (enter() != success || submit(stream, NodeKind::kernel) != success) return unhandled_cuda_error;
  count(Counter::collectives);
  return done;
}

struct Buffer {
  void* at = nullptr;
  size_t bytes = 0;
};

std::vector<int> all_ranks(const Communicator* communicator) {
  std::vector<int> ranks;
  for (int rank = 0; communicator && rank < communicator->ranks; ++rank) ranks.push_back(rank);
  return ranks;
}

// One collective: this rank sends a stretch, and receives what is made of those of the ranks `from`. All ranks must agree on
// the number of bytes sent.
Result exchange(const Communicator* communicator, Stream* stream, const void* sent, size_t bytes,
                Buffer received, const std::vector<int>& from, const Combine& combine) {
  if (const Result result = begin(communicator, stream)) return result;
  if (bytes > kMostContents || bytes == 0) {
    if (received.bytes > 0) forget_contents(received.at, received.bytes);
    return done;
  }
  const Sent own = sent ? written_contents(sent, bytes) : std::nullopt;
  if (!communicator->exchange->possible()) {
    const Sent result = own ? combine(std::vector<Sent>(from.size(), own)) : std::nullopt;
    if (result && received.bytes > 0) put_result(received.at, *result);
    return done;
  }
  const int64_t number = communicator->exchange->send(Exchange::kAll, own);
  if (received.bytes > 0)
    put_arrival(received.at, received.bytes, [other = communicator->exchange, from, number, combine] {
      std::vector<Sent> all;
      all.reserve(from.size());
      for (const int rank : from) all.push_back(other->receive(rank, Exchange::kAll, number));
      return combine(all);
    });
  return done;
}

Sent only(const std::vector<Sent>& all) { return all[0]; }

// One after the other; those that are not known are zero.
Combine joined(size_t bytes_of_each) {
  return [bytes_of_each](const std::vector<Sent>& all) -> Sent {
    std::string out;
    bool known = false;
    for (const Sent& sent : all) {
      known |= sent.has_value();
      out += sent ? *sent : std::string(bytes_of_each, '\0');
    }
    return known ? Sent(out) : std::nullopt;
  };
}

Combine reduced(int type, int operation) {
  return [type, operation](const std::vector<Sent>& all) -> Sent {
    std::vector<std::string> values;
    values.reserve(all.size());
    for (const Sent& sent : all) {
      if (!sent) return {};
      values.push_back(*sent);
    }
    return reduce(values, type, operation);
  };
}

// The stretch of each that is for one rank.
Combine part(size_t bytes, int rank, Combine of_all) {
  return [bytes, rank, of_all = std::move(of_all)](const std::vector<Sent>& all) {
    std::vector<Sent> parts;
    parts.reserve(all.size());
    for (const Sent& sent : all)
      parts.push_back(sent ? Sent(sent->substr(bytes * size_t(rank), bytes)) : std::nullopt);
    return of_all(parts);
  };
}

bool is(const Communicator* communicator, int rank) { return communicator && communicator->rank == rank; }
size_t ranks_of(const Communicator* communicator) { return communicator ? size_t(communicator->ranks) : 0; }
int rank_of(const Communicator* communicator) { return communicator ? communicator->rank : 0; }

}  // namespace

METAPROF_CUDA Result ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                                   Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  return exchange(communicator, stream, from, bytes, {to, bytes}, all_ranks(communicator),
                  reduced(type, operation));
}
METAPROF_CUDA Result ncclReduce(const void* from, void* to, size_t count, int type, int operation, int root,
                                Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  const Buffer received = is(communicator, root) ? Buffer{to, bytes} : Buffer{};
  return exchange(communicator, stream, from, bytes, received, all_ranks(communicator),
                  reduced(type, operation));
}
METAPROF_CUDA Result ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                                   Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  return exchange(communicator, stream, from, bytes, {to, bytes}, {root}, only);
}
METAPROF_CUDA Result ncclBcast(void* buffer, size_t count, int type, int root, Communicator* communicator,
                               Stream* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
METAPROF_CUDA Result ncclAllGather(const void* from, void* to, size_t count, int type,
                                   Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  return exchange(communicator, stream, from, bytes, {to, bytes * ranks_of(communicator)},
                  all_ranks(communicator), joined(bytes));
}
METAPROF_CUDA Result ncclReduceScatter(const void* from, void* to, size_t count, int type, int operation,
                                       Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  return exchange(communicator, stream, from, bytes * ranks_of(communicator), {to, bytes},
                  all_ranks(communicator), part(bytes, rank_of(communicator), reduced(type, operation)));
}
METAPROF_CUDA Result ncclAlltoAll(const void* from, void* to, size_t count, int type,
                                  Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type), all = bytes * ranks_of(communicator);
  return exchange(communicator, stream, from, all, {to, all}, all_ranks(communicator),
                  part(bytes, rank_of(communicator), joined(bytes)));
}
METAPROF_CUDA Result ncclGather(const void* from, void* to, size_t count, int type, int root,
                                Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  const Buffer received = is(communicator, root) ? Buffer{to, bytes * ranks_of(communicator)} : Buffer{};
  return exchange(communicator, stream, from, bytes, received, all_ranks(communicator), joined(bytes));
}
METAPROF_CUDA Result ncclScatter(const void* from, void* to, size_t count, int type, int root,
                                 Communicator* communicator, Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  const void* const sent = is(communicator, root) ? from : nullptr;
  return exchange(communicator, stream, sent, bytes * ranks_of(communicator), {to, bytes}, {root},
                  part(bytes, rank_of(communicator), only));
}

METAPROF_CUDA Result ncclSend(const void* from, size_t count, int type, int peer, Communicator* communicator,
                              Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  if (const Result result = begin(communicator, stream)) return result;
  if (peer < 0 || peer >= communicator->ranks) return invalid_argument;
  if (bytes <= kMostContents && communicator->exchange->possible())
    communicator->exchange->send(peer, written_contents(from, bytes));
  return done;
}
METAPROF_CUDA Result ncclRecv(void* to, size_t count, int type, int peer, Communicator* communicator,
                              Stream* stream) {
  const size_t bytes = count * element_bytes(type);
  if (const Result result = begin(communicator, stream)) return result;
  if (peer < 0 || peer >= communicator->ranks) return invalid_argument;
  if (bytes > kMostContents || !communicator->exchange->possible()) return forget_contents(to, bytes), done;
  put_arrival(
      to, bytes,
      [other = communicator->exchange, peer, own = communicator->rank,
       number = communicator->exchange->next_from(peer)] { return other->receive(peer, own, number); });
  return done;
}
