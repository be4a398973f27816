// Samples of distributions (aten/src/ATen/native/Distributions.cpp and cuda/Distributions.cpp, PyTorch 2.11).

#include "meta/autograd/engine/backward.h"
#include "meta/ops/random/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void like_self(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

// Each sample is divided by the sum of its last dimension.
void dirichlet_cuda(Call& c) {
  c.allocate(0);
  Sizes sums = c.tensor("self").sizes();
  if (!sums.empty()) sums.back() = 1;
  c.temporary(sums, c.tensor("self").dtype());
}

constexpr Op sample(std::string_view schema, std::string_view summary, std::string_view example,
                    const Derivatives& derivatives = not_differentiable) {
  return {.schema = schema,
          .summary = summary,
          .meta = like_self,
          .derivatives = derivatives,
          .flops = elementwise_flops<1>,
          .examples = {example},
          .facts = {.random = true}};
}

constexpr Op sample_by_sums() {
  Op op = sample("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
                 "samples of Dirichlet distributions with these concentrations", "f32[2,3]");
  op.host_code = {{DeviceType::cuda, dirichlet_cuda}};
  return op;
}

constexpr Op kDistributions[] = {
    sample("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
           "samples of gamma distributions with these shapes", "f32[2,3]",
           {{{"self"},
             {"self", "result"},
             [](Backward& b) -> Gradients {
               return {b.grad() * call<"_standard_gamma_grad">(b.session, b("self"), b("result"))};
             }}}),
    sample_by_sums(),
    sample("poisson(Tensor self, Generator? generator=None) -> Tensor",
           "samples of Poisson distributions with these rates", "f32[2,3]",
           {{{"self"}, {"self"}, [](Backward& b) -> Gradients { return {zeros_like(b("self"))}; }}}),
    {.schema = "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
     .summary = "how many of `count` happen with this probability",
     .meta =
         [](Call& c) {
           const Tensor &count = c.tensor("count"), &prob = c.tensor("prob");
           elementwise(c, {&count, &prob}, count.dtype());
         },
     .derivatives = not_differentiable,
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.random = true}},
    {.schema = "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
     .summary = "how samples of gamma distributions change with their shapes",
     .meta = like_self,
     .derivatives = not_differentiable,
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3]"}},
    {.schema = "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
     .summary = "how samples of Dirichlet distributions change with their concentrations",
     .meta =
         [](Call& c) {
           const Tensor &x = c.tensor("x"), &alpha = c.tensor("alpha"), &total = c.tensor("total");
           elementwise(c, {&x, &alpha, &total}, x.dtype());
         },
     .derivatives = not_differentiable,
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3] f32[2,3]"}}};

}  // namespace

Tables distribution_operators() {
  static constexpr Records tables[] = {kDistributions};
  return tables;
}

}  // namespace metaprof
