// einsum: dimensions by letters (aten/src/ATen/native/Linear.cpp, einsum, 2.11).

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>

#include "meta/ops/products/contractions.h"
#include "meta/ops/products/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/views/views.h"

namespace metaprof {
namespace {

constexpr int kLetters = 52, kEllipsis = kLetters;

// Capital letters come first, as in the framework: it decides the order of summed dimensions.
int number_of(char letter) {
  const auto c = static_cast<unsigned char>(letter);
  return std::isupper(c) ? letter - 'A' : letter - 'a' + 26;
}

using Labels = std::vector<int>;

class Equation {
 public:
  Equation(Call& c, const std::string& text, std::span<const Tensor> operands) : c_(c), operands_(operands) {
    std::fill(std::begin(place_), std::end(place_), -1);
    const size_t arrow = text.find("->");
    for (std::string_view rest = std::string_view(text).substr(0, arrow);;) {
      const size_t comma = rest.find(',');
      labels_.push_back(parse(rest.substr(0, comma)));
      if (comma == rest.npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (labels_.size() != operands.size())
      c.error(fmt::format("the equation names {} operands, got {}", labels_.size(), operands.size()));
    count_labels();
    if (arrow == text.npos) {
      place_implicit_output();
    } else {
      place_output(parse(std::string_view(text).substr(arrow + 2)));
    }
    place_summed();
  }

  /// The operand under all dimensions of the equation, those that it does not have with size 1.
  Tensor aligned(size_t operand) {
    Tensor tensor = operands_[operand];
    Sizes order(size_t(dims_), -1);
    int64_t dim = 0;
    for (int label : labels_[operand]) {
      if (label == kEllipsis) {
        const int64_t covered = operands_[operand].dim() - (int64_t(labels_[operand].size()) - 1);
        for (int64_t j = ellipsis_dims_ - covered; j < ellipsis_dims_; ++j) {
          count_dimension(ellipsis_at_ + j, tensor.size(dim));
          order[size_t(ellipsis_at_ + j)] = dim++;
        }
        continue;
      }
      int64_t& place = order[size_t(place_[label])];
      if (place < 0) {
        count_dimension(place_[label], tensor.size(dim));
        place = dim++;
      } else {
        const Tensor diagonal = call<"diagonal">(c_.session, tensor, 0, place, dim);
        tensor = call<"movedim.int">(c_.session, diagonal, -1, place);
      }
    }
    for (int64_t& place : order) {
      if (place >= 0) continue;
      tensor = unsqueeze(tensor, dim);
      place = dim++;
    }
    return permute(tensor, order);
  }

  /// The product of two aligned tensors, summed over what no other operand has.
  Tensor contract(Tensor a, Tensor b) {
    Sizes both, only_a, only_b;
    for (int64_t dim = output_dims_; dim < dims_; ++dim) {
      int64_t& users = users_[size_t(dim)];
      const bool in_a = a.size(dim) != 1, in_b = b.size(dim) != 1;
      if (in_a && in_b) {
        if (--users != 1) continue;
        both.push_back(dim);
        users = 0;
      } else if (users == 1 && (in_a || in_b)) {
        (in_a ? only_a : only_b).push_back(dim);
        users = 0;
      }
    }
    if (!only_a.empty()) a = sum(a, only_a, true);
    if (!only_b.empty()) b = sum(b, only_b, true);
    return sum_of_products(c_.session, a, b, both);
  }

  /// Without the summed dimensions, which are of size 1 unless there was only one operand.
  Tensor output(const Tensor& product) {
    if (dims_ == output_dims_) return product;
    if (operands_.size() > 1) return view(product, SizesView(product.sizes()).first(size_t(output_dims_)));
    Sizes summed;
    for (int64_t dim = output_dims_; dim < dims_; ++dim) summed.push_back(dim);
    return sum(product, summed, false);
  }

 private:
  Labels parse(std::string_view text) {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      if (text.substr(i, 3) == "...") {
        labels.push_back(kEllipsis);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        labels.push_back(number_of(text[i]));
      } else {
        c_.error(fmt::format("'{}' in the equation is neither a letter nor '...'", text[i]));
      }
    }
    if (std::count(labels.begin(), labels.end(), kEllipsis) > 1)
      c_.error("more than one '...' for one operand");
    return labels;
  }

  void count_labels() {
    for (size_t i = 0; i < labels_.size(); ++i) {
      const bool ellipsis = std::count(labels_[i].begin(), labels_[i].end(), kEllipsis) > 0;
      const int64_t letters = int64_t(labels_[i].size()) - ellipsis, dims = operands_[i].dim();
      if (ellipsis ? letters > dims : letters != dims)
        c_.error(fmt::format("operand {} has {} letters for {} dimensions", i, letters, dims));
      if (ellipsis) ellipsis_dims_ = std::max(ellipsis_dims_, dims - letters);
      for (int label : labels_[i])
        if (label != kEllipsis) ++count_[label];
    }
  }

  // Without an arrow: '...' and the letters that occur once, in their order.
  void place_implicit_output() {
    dims_ = ellipsis_dims_;
    ellipsis_in_output_ = true;
    for (int label = 0; label < kLetters; ++label)
      if (count_[label] == 1) place_[label] = dims_++;
  }

  void place_output(const Labels& labels) {
    for (int label : labels) {
      if (label == kEllipsis) {
        ellipsis_at_ = dims_;
        dims_ += ellipsis_dims_;
        ellipsis_in_output_ = true;
      } else if (count_[label] == 0 || place_[label] >= 0) {
        c_.error("a letter of the result occurs twice in it, or in no operand");
      } else {
        place_[label] = dims_++;
      }
    }
  }

  void place_summed() {
    output_dims_ = dims_;
    if (!ellipsis_in_output_) {
      ellipsis_at_ = dims_;
      dims_ += ellipsis_dims_;
    }
    for (int label = 0; label < kLetters; ++label)
      if (count_[label] > 0 && place_[label] < 0) place_[label] = dims_++;
    users_ = Sizes(size_t(dims_), int64_t{0});
    sizes_ = Sizes(size_t(dims_), int64_t{1});
  }

  void count_dimension(int64_t dim, int64_t size) {
    if (size == 1) return;
    int64_t& known = sizes_[size_t(dim)];
    if (known != 1 && known != size)
      c_.error(fmt::format("a letter stands for dimensions of size {} and {}", known, size));
    known = size;
    ++users_[size_t(dim)];
  }

  Call& c_;
  std::span<const Tensor> operands_;
  std::vector<Labels> labels_;
  int64_t count_[kLetters] = {};
  int64_t place_[kLetters];
  int64_t dims_ = 0, output_dims_ = 0, ellipsis_dims_ = 0, ellipsis_at_ = 0;
  bool ellipsis_in_output_ = false;
  Sizes users_, sizes_;  // per dimension: operands in which its size is not 1, and that size
};

void einsum_body(Call& c) {
  const Value::Tensors& operands = c.tensors("tensors");
  if (operands.empty()) c.error("expects at least one operand");
  Equation equation(c, c["equation"].string(), operands);
  std::deque<Tensor> left;
  for (size_t i = 0; i < operands.size(); ++i) left.push_back(equation.aligned(i));
  const bool has_path = c.given("path");
  for (size_t step = 0; left.size() > 1; step += 2) {
    int64_t i = 0, j = 1;
    if (has_path) {
      const Sizes& path = c.ints("path");
      if (step + 1 >= path.size()) c.error("the path has too few steps");
      i = std::min(path[step], path[step + 1]);
      j = std::max(path[step], path[step + 1]);
      if (i == j || i < 0 || j >= int64_t(left.size()))
        c.error("the path names an operand that is not there");
    }
    Tensor a = left[size_t(i)], b = left[size_t(j)];
    left.erase(left.begin() + j);
    left.erase(left.begin() + i);
    Tensor product = equation.contract(std::move(a), std::move(b));
    if (has_path) {
      left.push_back(std::move(product));
    } else {
      left.push_front(std::move(product));
    }
  }
  c.result(equation.output(left[0]));
}

constexpr Op kEinsum[] = {composite_of(
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    "Σ over letters that the result lacks", einsum_body,
    {"\"ij,jk->ik\" (f32[2,3] f32[3,4])", "\"ii->i\" (f32[3,3])", "\"bij,bjk\" (f32[2,3,4] f32[2,4,5])"},
    {.autocast = Autocast::lower_precision, .product = true})};

}  // namespace

Tables einsum_operators() {
  static constexpr Records tables[] = {kEinsum};
  return tables;
}

}  // namespace metaprof
