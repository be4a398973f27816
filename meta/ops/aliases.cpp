// Operators that are other ones under a second name (the framework's alias operators, all composite).

#include "meta/ops/all.h"
#include "meta/ops/functions.h"

namespace metaprof {
namespace {

template <FixedString name>
void same_as(Call& c) {
  const Operator& op = operator_at(c.session, slot_of<name>);
  // In place, the first argument is written; the rest of a schema may be shorter.
  SmallVector<Value, 4> given(c.arguments.begin(), c.arguments.end());
  c.result(std::move(invoke(c.session, op, std::span(given)).list()[0]));
}

Op alias(std::string_view schema, std::string_view summary, void (*body)(Call&), std::string_view example,
         bool in_place_too = true) {
  return composite_of(schema, summary, body, {example}, {.in_place_too = in_place_too});
}

}  // namespace

void add_alias_operators(std::vector<Op>& ops) {
  auto both = [&](std::string_view schema, std::string_view written, std::string_view summary,
                  void (*body)(Call&), void (*in_place)(Call&)) {
    ops.push_back(alias(schema, summary, body, "f32[2,3] f32[3]", false));
    ops.push_back(alias(written, summary, in_place, "f32[2,3] f32[3]", false));
  };
  both("true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
       "true_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "self / other",
       same_as<"div.Tensor">, same_as<"div_.Tensor">);
  both("divide.Tensor(Tensor self, Tensor other) -> Tensor",
       "divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "self / other", same_as<"div.Tensor">,
       same_as<"div_.Tensor">);
  both("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
       "subtract_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
       "self − alpha · other", same_as<"sub.Tensor">, same_as<"sub_.Tensor">);
  ops.push_back(alias("floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "⌊self / other⌋",
                      same_as<"floor_divide_">, "i64[2,3] i64[3]", false));
}

}  // namespace metaprof
