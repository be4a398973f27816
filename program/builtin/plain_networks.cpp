// torchvision/models/alexnet.py and vgg.py: convolutions one after the other, then linear layers.

#include "program/builtin/layers.h"
#include "program/builtin/torchvision.h"

namespace metaprof::vision {
namespace {

constexpr int64_t kPool = 0;  // among widths of convolutions

// Widths of 3×3 convolutions.
std::vector<int64_t> widths_of(std::string_view name) {
  if (name.starts_with("vgg11"))
    return {64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool};
  if (name.starts_with("vgg13"))
    return {64, 64, kPool, 128, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool};
  if (name.starts_with("vgg16"))
    return {64, 64, kPool, 128, 128, kPool, 256, 256, 256, kPool, 512, 512, 512, kPool, 512, 512, 512, kPool};
  return {64,  64,  kPool, 128, 128,   kPool, 256, 256, 256, 256,  kPool,
          512, 512, 512,   512, kPool, 512,   512, 512, 512, kPool};
}

struct Vgg : nn::Module<Vgg> {
  Vgg(const Place& place, const std::string& name)
      : Module(place, "torchvision.models.vgg.VGG"),
        features(child("features")),
        avgpool(child("avgpool"), 7),
        classifier(child("classifier")) {
    const bool norms = name.ends_with("_bn");
    int64_t in = 3;
    for (const int64_t width : widths_of(name)) {
      if (width == kPool) {
        features.add<MaxPool>(int64_t{2}, int64_t{2});
        continue;
      }
      features.add<nn::Conv2d>(in, width, int64_t{3}, int64_t{1}, int64_t{1});
      if (norms) features.add<nn::BatchNorm2d>(width);
      features.add<Relu>();
      in = width;
    }
    classifier.add<nn::Linear>(in * 7 * 7, int64_t{4096});
    classifier.add<Relu>();
    classifier.add<nn::Dropout>(0.5);
    classifier.add<nn::Linear>(int64_t{4096}, int64_t{4096});
    classifier.add<Relu>();
    classifier.add<nn::Dropout>(0.5);
    classifier.add<nn::Linear>(int64_t{4096}, kClasses);
  }

  Tensor forward(Tensor pixels) {
    Tensor x = features(pixels);
    x = avgpool(x);
    x = nn::flatten(x, 1);
    return classifier(x);
  }

  Sequence features;
  AveragePool avgpool;
  Sequence classifier;
};

struct AlexNet : nn::Module<AlexNet> {
  explicit AlexNet(const Place& place)
      : Module(place, "torchvision.models.alexnet.AlexNet"),
        features(child("features")),
        avgpool(child("avgpool"), 6),
        classifier(child("classifier")) {
    const auto convolution = [&](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
      features.add<nn::Conv2d>(in, out, kernel, stride, padding);
      features.add<Relu>();
    };
    convolution(3, 64, 11, 4, 2);
    features.add<MaxPool>(int64_t{3}, int64_t{2});
    convolution(64, 192, 5, 1, 2);
    features.add<MaxPool>(int64_t{3}, int64_t{2});
    convolution(192, 384, 3, 1, 1);
    convolution(384, 256, 3, 1, 1);
    convolution(256, 256, 3, 1, 1);
    features.add<MaxPool>(int64_t{3}, int64_t{2});
    classifier.add<nn::Dropout>(0.5);
    classifier.add<nn::Linear>(int64_t{256 * 6 * 6}, int64_t{4096});
    classifier.add<Relu>();
    classifier.add<nn::Dropout>(0.5);
    classifier.add<nn::Linear>(int64_t{4096}, int64_t{4096});
    classifier.add<Relu>();
    classifier.add<nn::Linear>(int64_t{4096}, kClasses);
  }

  Tensor forward(Tensor pixels) {
    Tensor x = features(pixels);
    x = avgpool(x);
    x = nn::flatten(x, 1);
    return classifier(x);
  }

  Sequence features;
  AveragePool avgpool;
  Sequence classifier;
};

Program vgg(const std::string& name, const InputSizes& sizes) { return classifier<Vgg>(name, sizes, name); }
Program alexnet(const std::string& name, const InputSizes& sizes) { return classifier<AlexNet>(name, sizes); }

}  // namespace

const std::vector<VisionModel>& plain_networks() {
  static const std::vector<VisionModel> models{{"alexnet", alexnet}, {"vgg11", vgg},    {"vgg11_bn", vgg},
                                               {"vgg13", vgg},       {"vgg13_bn", vgg}, {"vgg16", vgg},
                                               {"vgg16_bn", vgg},    {"vgg19", vgg},    {"vgg19_bn", vgg}};
  return models;
}

}  // namespace metaprof::vision
