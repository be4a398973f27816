#include "backends/cuda/measure/measure.h"

#include <algorithm>
#include <ctime>

#include "backends/cuda/measure/measure_memory.h"
#include "backends/cuda/measure/nvml.h"
#include "backends/cuda/measure/stopwatch.h"
#include "core/error.h"

namespace metaprof::cuda {
namespace {

struct Width {
  const char* type;
  DType dtype;
  bool tf32;
};
constexpr Width kTypes[] = {{"bf16", DType::bf16, false},
                            {"f16", DType::f16, false},
                            {"tf32", DType::f32, true},
                            {"f32", DType::f32, false},
                            {"f64", DType::f64, false}};

struct Shape {
  int64_t rows, columns, inner;
};

struct Layer {
  std::vector<int64_t> input, weight;
};

const char* name_of(PlannedOp op) {
  return op == PlannedOp::conv_fwd     ? "forward"
         : op == PlannedOp::conv_dgrad ? "data gradient"
                                       : "weight gradient";
}

class PinnedMemory {
 public:
  explicit PinnedMemory(size_t bytes) { driver().cuMemAllocHost(&address_, bytes); }
  ~PinnedMemory() { driver().cuMemFreeHost.try_to(address_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

class RateMeasurement {
 public:
  RateMeasurement(const MeasureOptions& options, const DeviceInUse& in_use, DeviceMeasurement& out)
      : options_(options),
        in_use_(in_use),
        out_(out),
        effort_(options.quick ? Effort{5, 0.005} : Effort{15, 0.05}),
        buffer_(bytes_of_buffer()) {
    const Region whole{buffer_.address(), third() * 3, third() * 3};
    in_use_.kernels->spend({}, {&whole, 1}, 0, nullptr);  // what is multiplied are finite numbers
  }

  void run() {
    const std::vector<std::function<void()>> all = measurements();
    for (size_t i = 0; i < all.size(); ++i) {
      all[i]();
      if (options_.progress) options_.progress(i + 1, all.size());
    }
  }

 private:
  const CudaDevice& device() const { return *in_use_.device; }
  // Three pieces: factors and result, or the tensors of a sum.
  uint64_t third() const { return bytes_of_buffer() / 3 / 512 * 512; }
  CUdeviceptr piece(int i) const { return buffer_.address() + static_cast<uint64_t>(i) * third(); }

  // At most a quarter of what is free, on an emulated device a little.
  uint64_t bytes_of_buffer() const {
    if (bytes_ == 0)
      bytes_ = static_cast<uint64_t>(std::min(device().memory().available / 4, 3 * largest_piece()));
    return bytes_;
  }
  int64_t largest_piece() const { return (options_.quick ? 512 : 2048) * kMebibyte; }

  std::vector<std::function<void()>> measurements() {
    std::vector<std::function<void()>> all;
    all.emplace_back([this] { launches(); });
    for (const int64_t bytes : sizes()) {
      for (const int width : {2, 4, 8, 16}) all.emplace_back([=, this] { elementwise(width, bytes); });
      all.emplace_back([=, this] { copy_within(bytes); });
    }
    for (const int64_t bytes : {kMebibyte, 64 * kMebibyte})
      for (const bool to_host : {false, true}) all.emplace_back([=, this] { copy_of_host(bytes, to_host); });
    for (const Width& type : kTypes)
      for (const Shape& shape : shapes()) all.emplace_back([=, this] { product(type, shape); });
    if (in_use_.convolutions)
      for (const Width& type : kTypes)
        if (type.dtype != DType::f64 && !type.tf32)
          for (const PlannedOp op : kPlannedOps)
            for (const Layer& layer : layers()) all.emplace_back([=, this] { convolution(type, op, layer); });
    return all;
  }

  // Of a ResNet-50 with 32 images.
  std::vector<Layer> layers() const {
    std::vector<Layer> layers = {{{32, 64, 56, 56}, {64, 64, 3, 3}}, {{32, 256, 14, 14}, {256, 256, 3, 3}}};
    if (options_.quick) return layers;
    layers.push_back({{32, 128, 28, 28}, {128, 128, 3, 3}});
    layers.push_back({{32, 512, 7, 7}, {512, 512, 3, 3}});
    layers.push_back({{32, 256, 56, 56}, {64, 256, 1, 1}});
    layers.push_back({{32, 1024, 14, 14}, {2048, 1024, 1, 1}});
    return layers;
  }

  // Of one tensor.
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    for (int64_t bytes = kMebibyte / 16; bytes <= static_cast<int64_t>(third());
         bytes *= options_.quick ? 8 : 2)
      sizes.push_back(bytes);
    return sizes;
  }

  // Squares, and what layers of language models have: many rows of tokens, a wide or a narrow side, a vocabulary.
  std::vector<Shape> shapes() const {
    std::vector<Shape> shapes;
    for (int64_t side = 512; side <= 8192; side *= 2)
      if (!options_.quick || side != 1024) shapes.push_back({side, side, side});
    shapes.push_back({8192, 3072, 768});
    if (options_.quick) return shapes;
    for (const Shape& more : {Shape{8192, 768, 3072}, Shape{8192, 50304, 768}, Shape{768, 50304, 8192},
                              Shape{128, 4096, 4096}, Shape{16, 4096, 4096}, Shape{1, 4096, 4096}})
      shapes.push_back(more);
    return shapes;
  }

  void launches() {
    const auto nothing = [this] { in_use_.kernels->spend({}, {}, 0, nullptr); };
    out_.launch = time_on(device(), effort_, nothing);
    out_.launch_wait = time_on_host(device(), effort_, [&] {
      nothing();
      device().synchronize();
    });
  }

  void elementwise(int width, int64_t bytes) {
    const auto work = [&] {
      in_use_.kernels->add(width, piece(0), piece(1), piece(2), static_cast<uint64_t>(bytes), nullptr);
    };
    out_.elementwise.push_back({width, {bytes}, time_on(device(), effort_, work)});
  }

  void copy_within(int64_t bytes) {
    const auto work = [&] {
      driver().cuMemcpyDtoDAsync(piece(1), piece(0), static_cast<size_t>(bytes), nullptr);
    };
    out_.copies.push_back({"device to device", {bytes}, time_on(device(), effort_, work)});
  }

  void copy_of_host(int64_t bytes, bool to_host) {
    const PinnedMemory host(static_cast<size_t>(bytes));
    const auto work = [&] {
      if (to_host)
        driver().cuMemcpyDtoHAsync(host.address(), piece(0), static_cast<size_t>(bytes), nullptr);
      else
        driver().cuMemcpyHtoDAsync(piece(0), host.address(), static_cast<size_t>(bytes), nullptr);
    };
    const char* direction = to_host ? "device to host" : "host to device";
    out_.copies.push_back({direction, {bytes}, time_on(device(), effort_, work)});
  }

  // Left out where the matrices are too large for the device.
  void product(const Width& type, const Shape& shape) {
    const Product product{.rows = shape.rows,
                          .columns = shape.columns,
                          .inner = shape.inner,
                          .dtype = type.dtype,
                          .tf32 = type.tf32};
    const int64_t largest =
        std::max({shape.rows * shape.inner, shape.inner * shape.columns, shape.rows * shape.columns});
    if (static_cast<uint64_t>(largest * element_size(type.dtype)) > third()) return;
    const auto work = [&] { in_use_.products->run(product, piece(0), piece(1), piece(2), nullptr); };
    out_.products.push_back(
        {type.type, shape.rows, shape.columns, shape.inner, time_on(device(), effort_, work)});
  }

  // The last half of the third piece is the workspace. Left out where cuDNN has no plan.
  void convolution(const Width& type, PlannedOp op, const Layer& layer) {
    std::vector<int64_t> output = layer.input;
    output[1] = layer.weight[0];
    ConvolutionQuestion question = convolution_between(layer.input, layer.weight, output, type.dtype).value();
    question.op = op;
    const uint64_t workspace = third() / 2;
    const auto work = [&] {
      return in_use_.convolutions->run(question, {.x = piece(0), .w = piece(1), .y = piece(2)},
                                       piece(2) + workspace, static_cast<int64_t>(workspace), nullptr);
    };
    double flops = 2;
    for (const int64_t size : layer.weight) flops *= static_cast<double>(size);
    flops *= static_cast<double>(output[0] * output[2] * output[3]);
    if (work())
      out_.convolutions.push_back(
          {name_of(op), type.type, layer.input, layer.weight, flops, time_on(device(), effort_, work)});
  }

  const MeasureOptions& options_;
  const DeviceInUse& in_use_;
  DeviceMeasurement& out_;
  Effort effort_;
  mutable uint64_t bytes_ = 0;
  DeviceBuffer buffer_;
};

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// cudaRuntimeGetVersion; 0: the library is not there.
int runtime_version() {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    try {
      int version = 0;
      const DynamicLibrary library(name);
      if (library.function<int(int*)>("cudaRuntimeGetVersion")(&version) == 0) return version;
    } catch (const Error&) {  // the next one
    }
  }
  return 0;
}

}  // namespace

DeviceMeasurement measure(const MeasureOptions& options) {
  DeviceMeasurement out;
  std::optional<int64_t> free_before = Nvml().free_memory();
  const Nvml nvml(pci_bus_id(options.ordinal));
  if (!free_before) free_before = nvml.free_memory();
  out.date = now();
  out.quick = options.quick;
  const DeviceInUse in_use = measure_memory(options.ordinal, free_before, out);
  out.emulated = in_use.device->is_emulated();
  out.driver = nvml.driver();
  out.driver_cuda = in_use.device->driver_version();
  out.libraries.cuda = runtime_version();
  const Hardware* known = find_hardware(out.hardware.name);
  out.like = known ? known->name : "";
  RateMeasurement(options, in_use, out).run();
  out.clocks = nvml.clocks();
  out.rates = rates_of(out);
  return out;
}

}  // namespace metaprof::cuda
