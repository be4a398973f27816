// What every record promises, over all records and all their examples.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/state.h"
#include "meta/ops/all.h"
#include "meta/ops/sparse/sparse.h"
#include "meta/platform/platform.h"
#include "tests/ops/unread_saved.h"
#include "validation/cases/example.h"

namespace metaprof {
namespace {

struct ExampleRun {
  std::unique_ptr<Session> session;
  std::vector<Value> arguments;
  std::optional<Results> results;
};

// Runs one example; in-place variants write to a copy of self, since a leaf cannot be written.
ExampleRun run_example(const Operator& op, FrameworkVersion version, std::string_view example,
                       const char* device, bool gradients) {
  ExampleRun run{make_session(with_framework(platform_named(device), version)), {}, std::nullopt};
  run.arguments = example_arguments(*run.session, op, example, gradients);
  std::vector<Value> given = run.arguments;
  for (size_t i = 0; i < given.size(); ++i)
    if (op.schema.arguments[i].written && given[i].is_tensor() && given[i].tensor().requires_grad())
      given[i] = Value(call<"clone">(*run.session, given[i].tensor(), Value()));
  run.results.emplace(invoke(*run.session, op, given));
  return run;
}

// Refusals that the framework shares.
bool is_expected(const Operator& op, std::string_view message) {
  if (message.find("the framework has no derivative") != std::string_view::npos) return true;
  if (op.in_place && message.find("cannot be written in place") != std::string_view::npos) return true;
  return message.find("that requires grad cannot be resized") != std::string_view::npos ||
         message.find("that requires grad cannot be set") != std::string_view::npos;
}

// Every operator of every version, with the first of these versions that has it.
void for_each_operator(const std::function<void(const Operator&, FrameworkVersion)>& visit) {
  std::set<std::pair<const Op*, bool>> seen;
  for (int minor = kOldestFramework.minor; minor <= kNewestFramework.minor; ++minor) {
    const FrameworkVersion version{.major = 2, .minor = minor};
    for (const auto& op : registry_for(version).operators()) {
      if (!seen.emplace(&op->record, op->in_place).second) continue;
      SCOPED_TRACE(op->name + " of " + to_string(version));
      visit(*op, version);
    }
  }
}

void for_each_example(const std::function<void(const Operator&, FrameworkVersion, std::string_view)>& visit) {
  for_each_operator([&](const Operator& op, FrameworkVersion version) {
    for (std::string_view example : op.record.examples) {
      SCOPED_TRACE("(" + std::string(example) + ")");
      visit(op, version, example);
    }
  });
}

std::vector<Tensor> differentiable_results(const Results& results) {
  std::vector<Tensor> roots;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& value = results.value(i);
    if (value.is_tensor() && value.tensor().requires_grad()) roots.push_back(value.tensor());
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors())
        if (tensor.requires_grad()) roots.push_back(tensor);
  }
  return roots;
}

void run_backward(Session& session, const std::vector<Tensor>& roots) {
  std::vector<Tensor> gradients;
  for (const Tensor& root : roots)
    gradients.push_back(root.is_sparse()
                            ? sparse_alias(root)
                            : session.empty_strided(root.sizes(), contiguous_strides(root.sizes()),
                                                    root.dtype(), root.device()));
  backward(session, roots, gradients);
}

TEST(Contract, EveryRecordHasASummaryAndAnExample) {
  for_each_operator([](const Operator& op, FrameworkVersion) {
    EXPECT_FALSE(op.record.summary.empty());
    EXPECT_FALSE(op.record.examples.empty());
    EXPECT_EQ(op.record.summary.find('\n'), std::string_view::npos);
  });
}

TEST(Contract, EveryOperatorThatCodeCallsHasARecord) {
  for (const FrameworkVersion version : {kOldestFramework, FrameworkVersion{}, kNewestFramework})
    for (uint32_t slot = 0; slot < slots().size(); ++slot)
      EXPECT_NO_THROW(registry_for(version).at_slot(slot)) << slots()[slot].name;
}

TEST(Contract, ResultsMatchTheSchema) {
  for (const char* device : {"h200", "cpu"}) {
    for_each_example([&](const Operator& op, FrameworkVersion version, std::string_view example) {
      try {
        const ExampleRun run = run_example(op, version, example, device, false);
        EXPECT_EQ(run.results->size(), op.schema.returns.size()) << device;
        for (size_t i = 0; i < run.results->size(); ++i) {
          const Value& value = run.results->value(i);
          if (op.schema.returns[i].type == Type::tensor && !value.is_none()) {
            EXPECT_EQ(value.is_tensors(), op.schema.returns[i].list);
          }
          if (value.is_tensor()) {
            EXPECT_TRUE(value.tensor()->storage) << "result without memory on " << device;
          }
        }
      } catch (const Error& error) {
        if (!is_expected(op, error.what())) ADD_FAILURE() << device << ": " << error.what();
      }
    });
  }
}

TEST(Contract, GradientsHaveTheSizesOfTheirInputs) {
  for_each_example([](const Operator& op, FrameworkVersion version, std::string_view example) {
    try {
      const ExampleRun run = run_example(op, version, example, "h200", true);
      const std::vector<Tensor> roots = differentiable_results(*run.results);
      if (roots.empty()) return;
      run_backward(*run.session, roots);
      auto check = [](const Tensor& input) {
        if (!input.defined() || !input.grad().defined() || input.grad().is_sparse()) return;
        EXPECT_EQ(to_string(SizesView(input.grad().sizes())), to_string(SizesView(input.sizes())));
        EXPECT_EQ(long_name(input.grad().dtype()), long_name(input.dtype()));
      };
      for (const Value& value : run.arguments) {
        if (value.is_tensor()) check(value.tensor());
        if (value.is_tensors())
          for (const Tensor& tensor : value.tensors()) check(tensor);
      }
    } catch (const Error& error) {
      if (!is_expected(op, error.what())) ADD_FAILURE() << error.what();
    }
  });
}

TEST(Contract, FormulasReadExactlyWhatTheyDeclare) {
  // Reading more is an Error (above). Here: declared tensors that no example's formula ever looks at.
  std::set<std::string> unread;
  for_each_operator([&](const Operator& op, FrameworkVersion version) {
    if (!op.has_derivative() || op.in_place || op.saved.empty()) return;
    uint64_t read = 0;
    for (std::string_view example : op.record.examples) {
      try {
        const ExampleRun run = run_example(op, version, example, "h200", true);
        const std::vector<Tensor> roots = differentiable_results(*run.results);
        if (roots.empty()) continue;
        autograd_state(*run.session).saved_read = 0;
        run_backward(*run.session, roots);
        read |= autograd_state(*run.session).saved_read;
      } catch (const Error&) {
        // The test above says why.
      }
    }
    for (size_t i = 0; i < op.saved.size(); ++i) {
      const SavedPlan& plan = op.saved[i];
      const Argument& argument =
          plan.result ? op.schema.returns[plan.index] : op.schema.arguments[plan.index];
      if (!(read >> i & 1)) unread.insert(op.name + "." + argument.name);
    }
  });
  EXPECT_EQ(unread, std::set<std::string>(std::begin(kUnreadSaved), std::end(kUnreadSaved)));
}

TEST(Contract, FlopsAreNotNegative) {
  for_each_example([](const Operator& op, FrameworkVersion version, std::string_view example) {
    try {
      const ExampleRun run = run_example(op, version, example, "h200", false);
      for (const CallRecord& call : run.session->trace.calls) {
        EXPECT_GE(call.counted.count, 0);
        EXPECT_GE(call.own.count, 0);
        EXPECT_TRUE(call.counted.count == 0 || call.own.count == 0) << "counted twice";
      }
    } catch (const Error& error) {
      if (!is_expected(op, error.what())) ADD_FAILURE() << error.what();
    }
  });
}

}  // namespace
}  // namespace metaprof
