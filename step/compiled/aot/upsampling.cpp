#include "step/compiled/aot/upsampling.h"

#include <algorithm>

#include "meta/autograd/modes/autocast.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

constexpr size_t kFirstLayer = static_cast<size_t>(Layer::autocast);

// What they compute follows from numbers, which nobody here wants: any scale is as good as the right one.
constexpr double kSomeScale = 0.5;

struct Way {
  std::string_view op;
  bool linear;
  int64_t least_channels;  // with fewer, a result of two dimensions is row-major whatever the image is
};
constexpr Way kWays[] = {
    {"aten::upsample_nearest1d", false, 4},        {"aten::upsample_nearest2d", false, 4},
    {"aten::upsample_nearest3d", false, 4},        {"aten::_upsample_nearest_exact1d", false, 4},
    {"aten::_upsample_nearest_exact2d", false, 4}, {"aten::_upsample_nearest_exact3d", false, 4},
    {"aten::upsample_linear1d", true, 16},         {"aten::upsample_bilinear2d", true, 16},
    {"aten::upsample_trilinear3d", true, 16}};

const Way* way_of(const Operator& op) {
  const auto way = std::ranges::find(kWays, op.name, &Way::op);
  return way == std::end(kWays) ? nullptr : way;
}

// One index tensor per dimension, of sizes that broadcast against those of the dimensions behind it.
Tensor stretched(Session& session, Tensor index, size_t behind) {
  for (size_t i = 0; i < behind; ++i) index = call<"unsqueeze">(session, index, -1);
  return index;
}

Tensor picked(Session& session, const Tensor& image, const std::vector<Tensor>& places) {
  Value::Tensors indices(2);
  indices.insert(indices.end(), places.begin(), places.end());
  return call<"index.Tensor">(session, image, std::move(indices));
}

Tensor nearest(Session& session, const Tensor& image, const Sizes& sizes) {
  std::vector<Tensor> places;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Tensor range = call<"arange">(session, sizes[d], DType::f32, Value(), image.device());
    const Tensor scaled = call<"mul.Tensor">(session, call<"add.Tensor">(session, range, 0.0), kSomeScale);
    places.push_back(stretched(session, call<"to.dtype">(session, scaled, DType::i64), sizes.size() - 1 - d));
  }
  return picked(session, image, places);
}

// The places between two elements, and these.
struct Between {
  Tensor place, left, right;
};

Between between(Session& session, const Tensor& image, int64_t size, size_t behind, bool corners) {
  const Tensor range = call<"arange">(session, size, Value(), Value(), image.device());
  Tensor place = call<"to.dtype">(session, range, image.dtype());
  if (!corners) place = call<"add.Tensor">(session, place, 0.5);
  place = call<"mul.Tensor">(session, place, kSomeScale);
  if (!corners) place = call<"sub.Tensor">(session, place, 0.5);
  place = stretched(session, call<"clamp">(session, place, 0.0), behind);
  const Tensor left = call<"to.dtype">(session, place, DType::i64);
  const Tensor right = call<"clamp">(session, call<"add.Tensor">(session, left, 1), Value(), size);
  return {place, left, right};
}

Tensor linear(Session& session, const Tensor& image, const Sizes& sizes, bool corners) {
  const size_t dims = sizes.size();
  std::vector<Between> all;
  for (size_t d = 0; d < dims; ++d) all.push_back(between(session, image, sizes[d], dims - 1 - d, corners));
  std::vector<Tensor> values;  // of all neighbours, the last dimension's side changing fastest
  for (size_t sides = 0; sides < size_t{1} << dims; ++sides) {
    std::vector<Tensor> places;
    for (size_t d = 0; d < dims; ++d)
      places.push_back((sides >> (dims - 1 - d)) % 2 == 0 ? all[d].left : all[d].right);
    values.push_back(picked(session, image, places));
  }
  for (size_t d = dims; d-- > 0;) {
    const Tensor share =
        call<"clamp">(session, call<"sub.Tensor">(session, all[d].place, all[d].left), 0.0, 1.0);
    std::vector<Tensor> sums;
    for (size_t i = 0; i < values.size(); i += 2) {
      const Tensor step = call<"sub.Tensor">(session, values[i + 1], values[i]);
      sums.push_back(call<"add.Tensor">(session, values[i], call<"mul.Tensor">(session, step, share)));
    }
    values = std::move(sums);
  }
  return values[0];
}

// Sixteen-bit images are computed in f32 (pw_cast_for_opmath).
void take_apart(Call& c, const Way& way) {
  Session& session = c.session;
  const Tensor given = c.tensor("self");
  const bool narrow = given.dtype() == DType::f16 || given.dtype() == DType::bf16;
  const Tensor image = narrow ? call<"to.dtype">(session, given, DType::f32) : given;
  const Sizes sizes = c.ints("output_size");
  Tensor result =
      way.linear ? linear(session, image, sizes, c.boolean("align_corners")) : nearest(session, image, sizes);
  if (way.linear || sizes.size() == 2) {
    const bool row_major = image.size(1) < way.least_channels;
    result =
        call<"contiguous">(session, result, row_major ? MemoryFormat::contiguous : suggested_format(image));
  }
  c.result(narrow ? call<"to.dtype">(session, result, given.dtype()) : result);
}

// The layer "autocast" while the compiler traces.
void tracing_layer(Call& call) {
  if (const Way* way = way_of(call.op)) return take_apart(call, *way);
  autocast_layer(call);
}

}  // namespace

UpsamplingByIndices::UpsamplingByIndices(Session& session) : session_(session) {
  session.layers[kFirstLayer] = tracing_layer;
}

UpsamplingByIndices::~UpsamplingByIndices() { session_.layers[kFirstLayer] = autocast_layer; }

}  // namespace metaprof
