// The identities of the per-node pass over whole models: those of this repository, and all exported ones
// where they are present.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "meta/platform/platform.h"
#include "program/pt2/pt2.h"
#include "step/step.h"
#include "tests/cases/identities.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

std::vector<std::string> models_in(const std::string& folder) {
  std::vector<std::string> models;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".pt2") models.push_back(entry.path().string());
  std::sort(models.begin(), models.end());
  return models;
}

void expect_identities_of(const std::string& model, const StepOptions& options,
                          const std::string& device = "h200") {
  SCOPED_TRACE(model + " " + std::string(to_string(options.precision)) + " " + options.checkpoint + " " +
               device);
  const Platform profile = platform_named(device);
  expect_identities(run_steps(read_pt2(model), profile, options), profile.device());
}

StepOptions one_step(Precision precision = Precision::fp32) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.precision = precision;
  return options;
}

TEST(NodeIdentities, HoldForTheModelsOfThisRepository) {
  for (const std::string& model : models_in("tests/data/models"))
    for (const Precision precision : {Precision::fp32, Precision::amp_bf16})
      expect_identities_of(model, one_step(precision));
}

TEST(NodeIdentities, HoldOnTheHost) {
  for (const char* model : {"resnet18", "gpt2", "tied_lm"})
    expect_identities_of(std::string("tests/data/models/") + model + ".pt2", one_step(), "cpu");
}

TEST(NodeIdentities, HoldWhenModulesAreComputedAgain) {
  StepOptions options = one_step();
  options.checkpoint = "model.transformer.h.*";
  expect_identities_of("tests/data/models/gpt2.pt2", options);
  options.checkpoint_reentrant = true;
  expect_identities_of("tests/data/models/gpt2.pt2", options);
}

TEST(NodeIdentities, HoldWithoutBackward) {
  StepOptions options = one_step();
  for (const Mode mode : {Mode::eval, Mode::no_grad, Mode::inference}) {
    options.mode = mode;
    expect_identities_of("tests/data/models/resnet18.pt2", options);
  }
}

TEST(NodeIdentities, HoldForAllExportedModels) {
  const std::vector<std::string> models = models_in(evidence_folder().models.string());
  EXPECT_GT(models.size(), 50u);
  for (const std::string& model : models)
    for (const Precision precision : {Precision::fp32, Precision::amp_bf16})
      expect_identities_of(model, one_step(precision));
}

}  // namespace
}  // namespace metaprof
