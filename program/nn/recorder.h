#pragma once
// Where a model that is written in C++ begins and ends:
//
//   nn::Recorder recorder("mlp");
//   const nn::Tensor x = recorder.input("x", DType::f32, {64, 784});
//   const nn::Tensor labels = recorder.input("labels", DType::i64, {64});
//   Mlp model(recorder.root());
//   const Program program = recorder.finish(nn::cross_entropy(model(x), labels));
//
// The program is one like any other: what takes a model takes it.

#include "program/nn/module.h"
#include "program/program.h"

namespace metaprof::nn {

class Recorder {
 public:
  /// `name`: of the model, in reports and messages.
  explicit Recorder(std::string name) : recording_(new Recording(std::move(name))) {}

  /// The place of the model itself, whose path is empty.
  Place root() const { return {recording_, ""}; }
  Tensor input(std::string name, DType dtype, Sizes sizes) const {
    return recording_->input(std::move(name), dtype, std::move(sizes));
  }
  /// A line for whoever reads results: what the program takes for granted.
  void warn(std::string warning) const { recording_->warn(std::move(warning)); }

  /// The program, whose backward begins at `loss`, a floating scalar. Nothing can be recorded afterwards.
  Program finish(Tensor loss) const { return recording_->finish(loss, {}); }
  /// A program without a loss, for inference.
  Program finish_outputs(const std::vector<Tensor>& outputs) const { return recording_->finish({}, outputs); }

 private:
  Ref<Recording> recording_;
};

}  // namespace metaprof::nn
