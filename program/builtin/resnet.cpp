// torchvision/models/resnet.py

#include <array>
#include <optional>

#include "program/builtin/layers.h"
#include "program/builtin/torchvision.h"

namespace metaprof::vision {
namespace {

struct Stage {
  int64_t in, planes, stride;
  bool wide;  ///< of three convolutions, whose last has four times as many channels
  int64_t out() const { return wide ? 4 * planes : planes; }
};

// BasicBlock and Bottleneck.
struct Block : nn::Module<Block> {
  Block(const Place& place, const Stage& stage)
      : Module(place,
               stage.wide ? "torchvision.models.resnet.Bottleneck" : "torchvision.models.resnet.BasicBlock") {
    const int64_t first = stage.wide ? 1 : 3;
    conv1.emplace(child("conv1"), stage.in, stage.planes, first, stage.wide ? 1 : stage.stride, first / 2,
                  false);
    bn1.emplace(child("bn1"), stage.planes);
    if (!stage.wide) relu.emplace(child("relu"));
    conv2.emplace(child("conv2"), stage.planes, stage.planes, 3, stage.wide ? stage.stride : 1, 1, false);
    bn2.emplace(child("bn2"), stage.planes);
    if (stage.wide) {
      conv3.emplace(child("conv3"), stage.planes, stage.out(), 1, 1, 0, false);
      bn3.emplace(child("bn3"), stage.out());
      relu.emplace(child("relu"));
    }
    if (stage.stride == 1 && stage.in == stage.out()) return;
    downsample.emplace(child("downsample"));
    downsample->add<nn::Conv2d>(stage.in, stage.out(), int64_t{1}, stage.stride, int64_t{0}, false);
    downsample->add<nn::BatchNorm2d>(stage.out());
  }

  Tensor forward(Tensor x) {
    Tensor identity = x;
    Tensor out = (*conv1)(x);
    out = (*bn1)(out);
    out = (*relu)(out);
    out = (*conv2)(out);
    out = (*bn2)(out);
    if (conv3) {
      out = (*relu)(out);
      out = (*conv3)(out);
      out = (*bn3)(out);
    }
    if (downsample) identity = (*downsample)(x);
    out = nn::call("add_.Tensor", out, identity);
    return (*relu)(out);
  }

  std::optional<nn::Conv2d> conv1, conv2, conv3;
  std::optional<nn::BatchNorm2d> bn1, bn2, bn3;
  std::optional<Relu> relu;
  std::optional<Sequence> downsample;
};

struct Plan {
  std::array<int64_t, 4> blocks;
  bool wide;
};

struct ResNet : nn::Module<ResNet> {
  ResNet(const Place& place, const Plan& plan)
      : Module(place, "torchvision.models.resnet.ResNet"),
        conv1(child("conv1"), 3, 64, 7, 2, 3, false),
        bn1(child("bn1"), 64),
        relu(child("relu")),
        maxpool(child("maxpool"), 3, 2, 1) {
    int64_t in = 64;
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
      Sequence& layer = layers.emplace_back(child("layer" + std::to_string(i + 1)));
      Stage stage{.in = in, .planes = int64_t{64} << i, .stride = i == 0 ? 1 : 2, .wide = plan.wide};
      for (int64_t block = 0; block < plan.blocks[i]; ++block) {
        layer.add<Block>(stage);
        stage.in = in = stage.out();
        stage.stride = 1;
      }
    }
    avgpool.emplace(child("avgpool"), 1);
    fc.emplace(child("fc"), in, kClasses);
  }

  Tensor forward(Tensor pixels) {
    Tensor x = conv1(pixels);
    x = bn1(x);
    x = relu(x);
    x = maxpool(x);
    for (Sequence& layer : layers) x = layer(x);
    x = (*avgpool)(x);
    x = nn::flatten(x, 1);
    return (*fc)(x);
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  Relu relu;
  MaxPool maxpool;
  std::vector<Sequence> layers;
  std::optional<AveragePool> avgpool;
  std::optional<nn::Linear> fc;
};

Program resnet(const std::string& name, const InputSizes& sizes) {
  if (name == "resnet18") return classifier<ResNet>(name, sizes, Plan{{2, 2, 2, 2}, false});
  if (name == "resnet34") return classifier<ResNet>(name, sizes, Plan{{3, 4, 6, 3}, false});
  if (name == "resnet50") return classifier<ResNet>(name, sizes, Plan{{3, 4, 6, 3}, true});
  if (name == "resnet101") return classifier<ResNet>(name, sizes, Plan{{3, 4, 23, 3}, true});
  return classifier<ResNet>(name, sizes, Plan{{3, 8, 36, 3}, true});
}

}  // namespace

const std::vector<VisionModel>& resnets() {
  static const std::vector<VisionModel> models{{"resnet18", resnet},
                                               {"resnet34", resnet},
                                               {"resnet50", resnet},
                                               {"resnet101", resnet},
                                               {"resnet152", resnet}};
  return models;
}

}  // namespace metaprof::vision
