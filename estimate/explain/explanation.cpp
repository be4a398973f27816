#include "estimate/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"

namespace metaprof {
namespace {

std::string text_of(Bytes bytes) { return human_bytes(bytes.count); }

// What the device holds that is not this process's. Without a list of processes, what lies outside this process's allocator cannot
// be told from it: a context takes up to about 1 GiB.
Bytes held_by_others(const OutOfMemoryMessage& m) {
  Bytes listed;
  for (const ProcessOnDevice& process : m.others) listed += process.bytes;
  if (m.this_process || !m.others.empty()) return listed;
  constexpr Bytes kContext{int64_t{1} << 30};
  return std::max(Bytes(), m.capacity - m.free - m.reserved() - kContext);
}

OutOfMemoryCause cause_of(const OutOfMemoryMessage& m, Bytes others) {
  const Bytes most = std::min(m.capacity, m.allowed.value_or(m.capacity));
  if (m.asked > most) return OutOfMemoryCause::too_large;
  if (m.allowed && m.reserved() + m.asked > *m.allowed && m.free >= m.asked) return OutOfMemoryCause::limit;
  if (m.free + m.cached >= m.asked) return OutOfMemoryCause::pieces;
  if (others > Bytes() && m.free + m.cached + others >= m.asked) return OutOfMemoryCause::other_processes;
  return OutOfMemoryCause::full;
}

std::string largest_of(const OutOfMemoryMessage& m) {
  if (m.others.empty()) return "something that the message does not name";
  const auto largest = std::ranges::max_element(m.others, {}, &ProcessOnDevice::bytes);
  return fmt::format("process {} ({})", largest->number, text_of(largest->bytes));
}

std::string why(const OutOfMemoryExplanation& e) {
  const OutOfMemoryMessage& m = e.message;
  switch (e.cause) {
    case OutOfMemoryCause::too_large:
      return fmt::format(
          "This one request is larger than all that the process may have ({}). In a tensor of {} there are "
          "{} numbers of "
          "4 bytes: look for a size that is not the one you meant.",
          text_of(std::min(m.capacity, m.allowed.value_or(m.capacity))), text_of(m.asked),
          grouped(m.asked.count / 4));
    case OutOfMemoryCause::limit:
      return fmt::format(
          "The process may have {} (set_per_process_memory_fraction) and has reserved {}. The device itself "
          "has {} free.",
          text_of(*m.allowed), text_of(m.reserved()), text_of(m.free));
    case OutOfMemoryCause::other_processes:
      return fmt::format(
          "Other programs hold {} of this GPU. Without them the request would have been served. The largest "
          "is {}.",
          text_of(e.others), largest_of(m));
    case OutOfMemoryCause::pieces:
      return fmt::format(
          "There was room: {} free and {} reserved but unallocated. But no piece of it was large enough, so "
          "the memory is "
          "fragmented.",
          text_of(m.free), text_of(m.cached));
    case OutOfMemoryCause::full: break;
  }
  return fmt::format(
      "The program needs more than this GPU has: tensors hold {}, and {} more were needed at this place.",
      text_of(m.allocated), text_of(e.missing));
}

// The variable has a shorter name since 2.9, and the longer one still works.
std::string fewer_pieces(const OutOfMemoryMessage& m) {
  return m.before_2_1 ? "Set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128, or use PyTorch 2.1 or newer and "
                        "expandable_segments:True"
                      : "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts";
}

std::vector<std::string> smaller_program() {
  return {"See who holds the memory: metaprof run -- python train.py",
          "Use a smaller batch, and accumulate gradients: metaprof fit MODEL --device NAME finds the largest "
          "that fits",
          "Recompute activations in the backward (torch.utils.checkpoint): metaprof advise MODEL shows what "
          "each such change saves"};
}

std::vector<std::string> helps(const OutOfMemoryExplanation& e) {
  const OutOfMemoryMessage& m = e.message;
  std::vector<std::string> out;
  switch (e.cause) {
    case OutOfMemoryCause::too_large:
      return {"Print the shapes of the call that failed (the last line of the traceback that is yours)"};
    case OutOfMemoryCause::limit:
      return {"Raise the fraction that torch.cuda.set_per_process_memory_fraction sets, or remove the call"};
    case OutOfMemoryCause::other_processes:
      return {
          "End the other program (nvidia-smi shows what runs), or use another GPU (CUDA_VISIBLE_DEVICES=1)"};
    case OutOfMemoryCause::pieces: out.push_back(fewer_pieces(m)); break;
    case OutOfMemoryCause::full: break;
  }
  for (std::string& line : smaller_program()) out.push_back(std::move(line));
  if (m.in_private_pools.count * 10 > m.allocated.count)
    out.push_back(fmt::format("CUDA graphs keep {}: capture fewer shapes, or share a pool between graphs",
                              text_of(m.in_private_pools)));
  if (e.cause == OutOfMemoryCause::full && m.cached.count * 10 > m.reserved().count)
    out.push_back(fewer_pieces(m));
  if (e.cause == OutOfMemoryCause::full && e.others.count * 20 > m.capacity.count)
    out.push_back(fmt::format("Other programs hold {} of this GPU: end them", text_of(e.others)));
  return out;
}

}  // namespace

OutOfMemoryExplanation explain(const OutOfMemoryMessages& messages) {
  const OutOfMemoryMessage& m = messages.last;
  OutOfMemoryExplanation out;
  out.message = m;
  out.messages = messages.count;
  out.others = held_by_others(m);
  out.outside = m.this_process ? std::max(Bytes(), *m.this_process - m.reserved()) : Bytes();
  out.missing = std::max(Bytes(), m.asked - m.free - m.cached);
  out.cause = cause_of(m, out.others);
  out.why = why(out);
  out.helps = helps(out);
  return out;
}

std::string_view to_string(OutOfMemoryCause cause) {
  switch (cause) {
    case OutOfMemoryCause::too_large: return "too-large";
    case OutOfMemoryCause::limit: return "limit";
    case OutOfMemoryCause::other_processes: return "other-processes";
    case OutOfMemoryCause::pieces: return "pieces";
    case OutOfMemoryCause::full: break;
  }
  return "full";
}

}  // namespace metaprof
