#include "backends/cuda/step_replay.h"

#include <algorithm>
#include <map>
#include <memory>

#include "backends/cuda/segments.h"
#include "backends/cuda/waiting_blocks.h"
#include "opcount/counts.h"

namespace metaprof::cuda {
namespace {

constexpr uint64_t kScratch = uint64_t{3} * 2048 * 2048 * 8;  // three matrices of f64
constexpr uint32_t kNoSlot = 0;

CachingAllocatorOptions on_device(CachingAllocatorOptions options, CudaSegments& segments) {
  options.device.source = &segments;
  options.events_complete_at_once = false;
  return options;
}

// Calls the allocator as requests come, and executes what the trace has between them.
class Execution final : public DeviceAllocator {
 public:
  Execution(const Trace& trace, const Requests& requests, const Rates& rates,
            const CachingAllocatorOptions& options, const CudaDevice& device, CudaSegments& segments,
            const Kernels& kernels, Products& products, Convolutions* convolutions, CUdeviceptr scratch)
      : trace_(trace),
        device_(device),
        segments_(segments),
        kernels_(kernels),
        products_(products),
        allocator_(on_device(options, segments)),
        waiting_(allocator_, [this](StreamId number) { return stream_numbered(number); }),
        costs_(call_costs(trace, rates)),
        placed_(trace.storages.size()),
        call_execution_(trace, rates, kernels, products, convolutions, scratch, kScratch),
        requests_(requests) {
    for (const StepPart& part : requests_.parts) last_step_ = std::max(last_step_, part.step);
  }

  DeviceReplay run() {
    DeviceReplay out;
    out.phases = replay(requests_, *this, [this](const Request& request) { before(request); });
    if (!out.phases.out_of_memory) execute_until(trace_.events.size());
    end_part();
    driver().cuCtxSynchronize();
    read_times(out);
    out.segments = segments_.calls();
    out.addresses = std::make_shared<const GivenAddresses>(segments_.addresses());
    out.waited = waiting_.waited();
    return out;
  }

  // DeviceAllocator
  std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) override {
    waiting_.process();
    const std::optional<BlockNumber> block = allocator_.allocate(bytes, stream);
    if (block) place(allocator_.block(*block).address, static_cast<uint64_t>(bytes));
    return block;
  }
  void free(BlockNumber block) override {
    placed_[pending_.slot] = {};
    if (pending_.slot == workspace_) {
      products_.set_workspace(0, 0);
      workspace_ = kNoSlot;
    }
    allocator_.free(block);
    waiting_.freed(block);
  }
  void record_stream(BlockNumber block, uint16_t stream) override {
    allocator_.record_stream(block, stream);
    waiting_.use(block, stream);
  }
  void empty_cache() override { allocator_.empty_cache(); }
  void reset_peaks() override { allocator_.reset_peaks(); }
  AllocatorNumbers numbers() const override { return allocator_.numbers(); }

 private:
  struct Part {
    CudaEvent begin, end;
    ReplayedPart result;
  };
  struct TimedCall {
    uint32_t call;
    ReplayedAs as;
    CudaEvent begin, end;
  };

  void before(const Request& request) {
    execute_until(request.event);
    pending_ = request;
    if (request.kind == Request::Kind::allocate) stream_ = request.stream;
    if (request.kind == Request::Kind::begin_part || request.kind == Request::Kind::end_part) end_part();
    if (request.kind == Request::Kind::begin_part) begin_part(requests_.parts[request.slot]);
  }

  void begin_part(const StepPart& part) {
    parts_.emplace_back();
    open_ = true;
    timed_ = part.step == last_step_ && part.phase != Phase::setup;
    segments_.reset_most_used();
    parts_.back().begin.record(nullptr);
  }

  void end_part() {
    if (!open_) return;
    open_ = timed_ = false;
    parts_.back().end.record(nullptr);
    parts_.back().result.most_used = {segments_.most_used()};
  }

  // Tensors that no call makes get finite numbers, so that products of them are finite, too.
  void place(uint64_t address, uint64_t bytes) {
    placed_[pending_.slot] = {address, bytes};
    const StorageRecord& storage = trace_.storages[pending_.slot];
    if (trace_.text(storage.name) == "cuBLAS workspace") {
      products_.set_workspace(address, bytes);
      workspace_ = pending_.slot;
    } else if (storage.call == 0 && storage.category != Category::workspace) {
      const Region whole{address, bytes, bytes};
      kernels_.spend({}, {&whole, 1}, 0, stream());
    }
  }

  void execute_until(size_t end) {
    for (; next_ < end; ++next_) {
      const Event& event = trace_.events[next_];
      switch (event.kind) {
        case Event::Kind::call:
        case Event::Kind::node: open_events_.push_back(&event); break;
        case Event::Kind::end:
          if (open_events_.back()->kind == Event::Kind::call) execute(open_events_.back()->id);
          open_events_.pop_back();
          break;
        case Event::Kind::wait: wait(event); break;
        default: break;
      }
    }
  }

  void execute(uint32_t index) {
    const CallRecord& call = trace_.calls[index];
    const CallCost& cost = costs_[index];
    if (cost.moved.count == 0 && cost.all.count == 0) return;
    if (open_) parts_.back().result.expected += cost.expected;
    if (!timed_) {
      call_execution_.run(call, cost, placed_, stream());
      return;
    }
    TimedCall timed{.call = index, .as = {}, .begin = {}, .end = {}};
    timed.begin.record(stream());
    timed.as = call_execution_.run(call, cost, placed_, stream());
    timed.end.record(stream());
    timed_calls_.push_back(std::move(timed));
  }

  // The trace's stream 0 is the default one.
  CUstream stream() { return stream_numbered(stream_); }
  CUstream stream_numbered(uint16_t number) {
    if (number == 0) return nullptr;
    std::unique_ptr<CudaStream>& stream = streams_[number];
    if (!stream) stream = std::make_unique<CudaStream>();
    return stream->handle();
  }

  void wait(const Event& event) {
    const CudaEvent reached;
    reached.record(stream_numbered(static_cast<uint16_t>(event.id)));
    reached.wait_in(stream_numbered(event.stream));
  }

  std::optional<double> seconds_between(const CudaEvent& begin, const CudaEvent& end) const {
    return device_.is_emulated() ? std::nullopt : std::optional(end.seconds_since(begin));
  }

  static void add(ReplayedCalls& sum, const CallCost& cost, std::optional<double> seconds) {
    ++sum.calls;
    sum.flops += cost.all;
    sum.moved += cost.moved;
    sum.expected += cost.expected;
    if (seconds) sum.seconds = sum.seconds.value_or(0) + *seconds;
  }

  void read_times(DeviceReplay& out) {
    for (Part& part : parts_) {
      part.result.seconds = seconds_between(part.begin, part.end);
      out.most_used = std::max(out.most_used, part.result.most_used);
      out.parts.push_back(part.result);
    }
    std::map<std::pair<std::string, ReplayedAs>, ReplayedCalls> by_op;
    for (const TimedCall& timed : timed_calls_) {
      const std::optional<double> seconds = seconds_between(timed.begin, timed.end);
      const std::string op = op_packet_name(trace_.text(trace_.calls[timed.call].op));
      add(out.by_kind[static_cast<size_t>(timed.as)], costs_[timed.call], seconds);
      add(by_op[{op, timed.as}], costs_[timed.call], seconds);
    }
    for (const auto& [name, total] : by_op) out.by_op.push_back({name.first, name.second, total});
    std::ranges::stable_sort(out.by_op, std::ranges::greater(), [](const ReplayedOp& op) {
      return std::pair(op.total.seconds.value_or(0), op.total.expected);
    });
  }

  const Trace& trace_;
  const CudaDevice& device_;
  CudaSegments& segments_;
  const Kernels& kernels_;
  Products& products_;
  CachingAllocator allocator_;
  WaitingBlocks waiting_;
  std::vector<CallCost> costs_;  // by call
  Placements placed_;            // by storage
  CallExecution call_execution_;
  const Requests& requests_;
  uint32_t last_step_ = 0;

  Request pending_ = {};                   // the one that is made
  uint16_t stream_ = 0;                    // of the last request
  uint32_t workspace_ = kNoSlot;           // the storage that cuBLAS works in
  size_t next_ = 0;                        // event
  std::vector<const Event*> open_events_;  // calls and nodes
  std::map<uint16_t, std::unique_ptr<CudaStream>> streams_;
  bool open_ = false, timed_ = false;
  std::vector<Part> parts_;
  std::vector<TimedCall> timed_calls_;
};

}  // namespace

StepReplay::StepReplay(const CudaDevice& device) : device_(device), kernels_(device), scratch_(kScratch) {
  try {
    convolutions_.emplace();
  } catch (const Error&) {  // convolutions are then products of as many FLOPs
  }
  const Region whole{scratch_.address(), kScratch, kScratch};
  kernels_.spend({}, {&whole, 1}, 0, nullptr);
  device_.synchronize();
}

DeviceReplay StepReplay::run(const Trace& trace, const Requests& requests, const Rates& rates,
                             const CachingAllocatorOptions& options) {
  CudaSegments segments(device_);
  const int64_t before = device_.memory().used();
  DeviceReplay out = Execution(trace, requests, rates, options, device_, segments, kernels_, products_,
                               convolutions_ ? &*convolutions_ : nullptr, scratch_.address())
                         .run();
  out.title = device_.title();
  out.ordinal = device_.ordinal();
  out.driver = device_.driver_version();
  out.cublas = products_.version();
  out.cudnn = convolutions_ ? convolutions_->version() : 0;
  out.memory = {device_.memory().total};
  out.used_before = {before};
  out.used_after = {device_.memory().used() - out.phases.peak.reserved_bytes.current};
  return out;
}

}  // namespace metaprof::cuda
