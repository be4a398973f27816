#pragma once
// Modules of a model that is written in C++, by the framework's customs: state has the path of its module, calls
// inside `forward` are the module's, and whoever calls a module holds what it passes until the call returns.
//
//   struct Mlp : nn::Module<Mlp> {
//     explicit Mlp(const nn::Place& place)
//         : Module(place, "Mlp"), fc1(child("fc1"), 784, 512), fc2(child("fc2"), 512, 10) {}
//     nn::Tensor forward(nn::Tensor x) { return fc2(nn::relu(fc1(x))); }
//     nn::Linear fc1, fc2;
//   };
//
// A call inside an argument of a call is written down when C++ evaluates it, and C++ does not say which of two
// arguments goes first: of two arguments that call, give one a name.

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "program/nn/recording.h"

namespace metaprof::nn {

/// Where a module stands in the model that is being written down.
struct Place {
  Ref<Recording> recording;
  std::string path;
};

/// What all modules share.
class AnyModule {
 public:
  /// `type`: for reports, "torch.nn.modules.linear.Linear".
  AnyModule(const Place& place, std::string type);

  Place child(std::string_view name) const;
  Place child(std::string_view name, int64_t index) const;
  const std::string& path() const { return recording_->path(number_); }
  Recording& recording() const { return *recording_; }

  /// A parameter of the module, of 32 bits, that trains.
  Tensor parameter(std::string_view name, Sizes sizes) const;
  /// `persistent`: it is part of the model's state.
  Tensor buffer(std::string_view name, Sizes sizes, DType dtype, bool persistent) const;
  /// The module's own parameters do not train.
  void freeze() const { recording_->freeze(number_); }
  /// Another module's parameter under a name of this one.
  Tensor tied(std::string_view name, const Tensor& parameter) const;

  /// The framework's factories, on the model's device.
  Tensor arange(int64_t end) const;
  Tensor make(std::string_view op, std::span<Argument> given) const;

 protected:
  /// Calls are this module's as long as it lives.
  class Entered {
   public:
    explicit Entered(const AnyModule& module) : recording_(module.recording()) {
      recording_.enter(module.number_);
    }
    ~Entered() { recording_.leave(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    Recording& recording_;
  };

 private:
  Ref<Recording> recording_;
  int32_t number_;
};

template <class Self>
class Module : public AnyModule {
 public:
  using AnyModule::AnyModule;

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    const Entered entered(*this);
    std::tuple<Arguments...> held(std::move(arguments)...);
    return std::apply([this](const auto&... each) { return static_cast<Self&>(*this).forward(each...); },
                      held);
  }
};

/// torch.nn.ModuleList. Its modules are made one after the other: `make(Place, index)`.
template <class Element>
class ModuleList : public AnyModule {
 public:
  template <class Make>
  ModuleList(const Place& place, int64_t count, Make make)
      : AnyModule(place, "torch.nn.modules.container.ModuleList") {
    elements_.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) elements_.push_back(make(child(std::to_string(i)), i));
  }

  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  size_t size() const { return elements_.size(); }
  Element& operator[](size_t i) { return elements_[i]; }

 private:
  std::vector<Element> elements_;
};

/// Autocast is off for calls as long as it lives.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(Recording& recording) : recording_(recording) {
    recording_.without_autocast = true;
  }
  ~WithoutAutocast() { recording_.without_autocast = false; }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  Recording& recording_;
};

}  // namespace metaprof::nn
