#include "program/torchscript/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <unordered_map>

#include "core/dtype.h"
#include "core/error.h"
#include "program/program.h"

namespace metaprof::script {
namespace {

using Items = std::span<const Item>;
using Dict = std::shared_ptr<Dictionary>;
using List = Item::List;

constexpr size_t kMostElements = 1'000'000;

[[noreturn]] void no_value() {
  fail(
      "the value of a tensor decides here, and no tensor has values; choose with --condition, give what "
      "decides as a number, or save the model without that branch");
}

const Item& number(const Item& item) {
  if (item.is_tensor()) no_value();
  if (!item.is_number()) fail("expected a number, got {}", item.kind());
  return item;
}
int64_t whole(const Item& item) {
  if (number(item).is<double>()) fail("expected an integer, got {}", item.text());
  return item.integer();
}
int64_t whole_or(Items items, size_t at, int64_t otherwise) {
  return at < items.size() && !items[at].is_none() ? whole(items[at]) : otherwise;
}
const nn::Tensor& tensor(const Item& item) {
  if (!item.is_tensor()) fail("expected a tensor, got {}", item.kind());
  return item.as<nn::Tensor>();
}
List list(const Item& item) {
  if (!item.is_sequence()) fail("expected a list, got {}", item.kind());
  return item.as<List>();
}
const Dict& dictionary(const Item& item) {
  if (!item.is<Dict>()) fail("expected a dictionary, got {}", item.kind());
  return item.as<Dict>();
}
const std::string& text(const Item& item) {
  if (!item.is<std::string>()) fail("expected a text, got {}", item.kind());
  return item.as<std::string>();
}
void check_count(size_t count) {
  if (count > kMostElements) fail("a list of more than {} elements", kMostElements);
}
Item integers(SizesView numbers) {
  std::vector<Item> items(numbers.begin(), numbers.end());
  return Item::list(std::move(items));
}

// ---- numbers

[[noreturn]] void too_large() { fail("a number of more than 64 bits"); }

Item sum_of(const Item& a, const Item& b) {
  if (number(a).is<double>() || number(b).is<double>()) return a.real() + b.real();
  int64_t sum = 0;
  if (__builtin_add_overflow(a.integer(), b.integer(), &sum)) too_large();
  return sum;
}

Item add(Items items) {
  const Item &a = items[0], &b = items[1];
  if (a.is<std::string>()) {
    check_count(a.as<std::string>().size() + text(b).size());
    return a.as<std::string>() + text(b);
  }
  if (!a.is_sequence()) return sum_of(a, b);
  std::vector<Item> joined = a.elements();
  joined.insert(joined.end(), list(b)->elements.begin(), list(b)->elements.end());
  check_count(joined.size());
  return Item::list(std::move(joined));
}

Item subtract(Items items) {
  if (number(items[0]).is<double>() || number(items[1]).is<double>())
    return items[0].real() - items[1].real();
  int64_t difference = 0;
  if (__builtin_sub_overflow(items[0].integer(), items[1].integer(), &difference)) too_large();
  return difference;
}

Item multiply(Items items) {
  if (items[0].is_sequence()) {
    std::vector<Item> repeated;
    const std::vector<Item>& once = items[0].elements();
    const int64_t times = std::max<int64_t>(whole(items[1]), 0);
    if (!once.empty() && static_cast<uint64_t>(times) > kMostElements / once.size())
      check_count(kMostElements + 1);
    for (int64_t i = 0; i < times && !once.empty(); ++i)
      repeated.insert(repeated.end(), once.begin(), once.end());
    return Item::list(std::move(repeated));
  }
  if (number(items[0]).is<double>() || number(items[1]).is<double>())
    return items[0].real() * items[1].real();
  int64_t product = 0;
  if (__builtin_mul_overflow(items[0].integer(), items[1].integer(), &product)) too_large();
  return product;
}

// Towards the smaller number, as Python divides; the least number by -1 has no quotient.
int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) fail("a division by zero");
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) too_large();
    return -a;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

Item floor_divide(Items items) {
  if (number(items[0]).is<double>() || number(items[1]).is<double>()) {
    if (items[1].real() == 0) fail("a division by zero");
    return std::floor(items[0].real() / items[1].real());
  }
  return floor_quotient(items[0].integer(), items[1].integer());
}

Item remainder_of(Items items) {
  if (number(items[0]).is<double>() || number(items[1]).is<double>()) {
    const double a = items[0].real(), b = items[1].real();
    if (b == 0) fail("a division by zero");
    return a - std::floor(a / b) * b;
  }
  const int64_t a = items[0].integer(), b = items[1].integer();
  if (b == -1) return int64_t{0};
  return a - floor_quotient(a, b) * b;
}

Item divide(Items items) {
  if (number(items[1]).real() == 0) fail("a division by zero");
  return number(items[0]).real() / items[1].real();
}

Item power(Items items) {
  const Item &base = number(items[0]), &exponent = number(items[1]);
  const double result = std::pow(base.real(), exponent.real());
  if (base.is<double>() || exponent.is<double>() || exponent.integer() < 0) return result;
  if (std::abs(result) >= 9.2e18) too_large();
  return static_cast<int64_t>(std::llround(result));
}

Item negative(Items items) {
  if (number(items[0]).is<double>()) return -items[0].real();
  return subtract(std::array<Item, 2>{Item(int64_t{0}), items[0]});
}

template <double (*F)(double)>
Item real_function(Items items) {
  return F(number(items[0]).real());
}
double square_root(double x) { return std::sqrt(x); }
double natural_logarithm(double x) { return std::log(x); }
double exponential(double x) { return std::exp(x); }

template <double (*F)(double)>
Item rounded(Items items) {
  if (!number(items[0]).is<double>()) return items[0];
  const double result = F(items[0].real());
  if (!(std::abs(result) < 9.2e18)) too_large();
  return static_cast<int64_t>(result);
}
double down(double x) { return std::floor(x); }
double up(double x) { return std::ceil(x); }

Item round_half_even(Items items) {
  if (!number(items[0]).is<double>()) return items[0];
  return std::nearbyint(items[0].real());
}

Item absolute(Items items) { return number(items[0]).real() < 0 ? negative(items.first(1)) : items[0]; }

// Of two numbers, or of a list of them.
template <bool kLargest>
Item extreme(Items items) {
  const std::vector<Item> all =
      items[0].is_sequence() ? items[0].elements() : std::vector<Item>(items.begin(), items.end());
  if (all.empty()) fail("the largest of no numbers");
  const auto smaller = [](const Item& a, const Item& b) { return number(a).real() < number(b).real(); };
  return kLargest ? *std::ranges::max_element(all, smaller) : *std::ranges::min_element(all, smaller);
}

Item total(Items items) {
  Item sum = int64_t{0};
  for (const Item& element : list(items[0])->elements) sum = sum_of(sum, element);
  return sum;
}
Item any(Items items) { return std::ranges::any_of(list(items[0])->elements, truth); }
Item all(Items items) { return std::ranges::all_of(list(items[0])->elements, truth); }

// ---- comparisons

Item equal(Items items) { return same(items[0], items[1]); }
Item unequal(Items items) { return !same(items[0], items[1]); }
template <class Compare>
Item ordered(Items items) {
  if (items[0].is<std::string>()) return Compare()(items[0].as<std::string>(), text(items[1]));
  return Compare()(number(items[0]).real(), number(items[1]).real());
}
Item both(Items items) {
  if (items[0].is<bool>()) return truth(items[0]) && truth(items[1]);
  return whole(items[0]) & whole(items[1]);
}
Item either(Items items) {
  if (items[0].is<bool>()) return truth(items[0]) || truth(items[1]);
  return whole(items[0]) | whole(items[1]);
}
Item negation(Items items) { return !truth(items[0]); }

// ---- lists, text, dictionaries

size_t place_in(size_t count, int64_t index) {
  const int64_t size = static_cast<int64_t>(count), at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) fail("element {} of a list of {}", index, size);
  return static_cast<size_t>(at);
}

Item length(Items items) {
  const Item& item = items[0];
  if (item.is_sequence()) return static_cast<int64_t>(item.elements().size());
  if (item.is<Dict>()) return static_cast<int64_t>(item.as<Dict>()->entries.size());
  if (item.is<std::string>()) return static_cast<int64_t>(item.as<std::string>().size());
  if (tensor(item).dim() == 0) fail("len() of a tensor without dimensions");
  return tensor(item).size(0);
}

Item append(Items items) {
  check_count(list(items[0])->elements.size() + 1);
  list(items[0])->elements.push_back(items[1]);
  return items[0];
}
Item extend(Items items) {
  const std::vector<Item> more = list(items[1])->elements;
  check_count(list(items[0])->elements.size() + more.size());
  list(items[0])->elements.insert(list(items[0])->elements.end(), more.begin(), more.end());
  return {};
}
Item insert(Items items) {
  std::vector<Item>& elements = list(items[0])->elements;
  check_count(elements.size() + 1);
  const auto size = static_cast<int64_t>(elements.size());
  int64_t at = whole(items[1]);
  if (at < 0) at += size;
  elements.insert(elements.begin() + std::clamp<int64_t>(at, 0, size), items[2]);
  return {};
}
Item pop(Items items) {
  if (items[0].is<Dict>()) {
    Item found = element_of(items[0], items[1]);
    std::erase_if(items[0].as<Dict>()->entries,
                  [&](const auto& entry) { return same(entry.first, items[1]); });
    return found;
  }
  std::vector<Item>& elements = list(items[0])->elements;
  const size_t at = place_in(elements.size(), whole_or(items, 1, -1));
  Item popped = elements[at];
  elements.erase(elements.begin() + static_cast<ptrdiff_t>(at));
  return popped;
}
Item clear(Items items) {
  list(items[0])->elements.clear();
  return {};
}
Item reverse(Items items) {
  std::ranges::reverse(list(items[0])->elements);
  return {};
}
Item copied(Items items) { return Item::list(list(items[0])->elements); }

Item as_list(Items items) {
  if (!items[0].is<std::string>()) return copied(items);
  std::vector<Item> letters;
  for (const char letter : items[0].as<std::string>()) letters.emplace_back(std::string(1, letter));
  return Item::list(std::move(letters));
}

// [start:end:step] of a list or a text
Item slice(Items items) {
  const bool is_text = items[0].is<std::string>();
  const int64_t size = length(items.first(1)).integer(), step = whole_or(items, 3, 1);
  if (step == 0) fail("a slice with step 0");
  const auto clamped = [&](size_t at, int64_t otherwise, int64_t least, int64_t most) {
    if (at >= items.size() || items[at].is_none()) return otherwise;
    const int64_t index = whole(items[at]);
    return std::clamp(index < 0 ? index + size : index, least, most);
  };
  const int64_t begin = step > 0 ? clamped(1, 0, 0, size) : clamped(1, size - 1, -1, size - 1);
  const int64_t end = step > 0 ? clamped(2, size, 0, size) : clamped(2, -1, -1, size - 1);
  std::vector<Item> elements;
  std::string letters;
  const int64_t stride = std::clamp(step, -size - 1, size + 1);
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += stride) {
    if (is_text)
      letters += items[0].as<std::string>()[static_cast<size_t>(i)];
    else
      elements.push_back(items[0].elements()[static_cast<size_t>(i)]);
  }
  if (is_text) return letters;
  return items[0].as<List>()->is_tuple ? Item::tuple(std::move(elements)) : Item::list(std::move(elements));
}

Item set_item(Items items) {
  if (items[0].is<Dict>()) {
    auto& entries = items[0].as<Dict>()->entries;
    for (auto& [key, value] : entries)
      if (same(key, items[1])) {
        value = items[2];
        return {};
      }
    check_count(entries.size() + 1);
    entries.emplace_back(items[1], items[2]);
    return {};
  }
  std::vector<Item>& elements = list(items[0])->elements;
  elements[place_in(elements.size(), whole(items[1]))] = items[2];
  return {};
}

Item contains(Items items) {
  if (items[0].is<std::string>()) return items[0].as<std::string>().find(text(items[1])) != std::string::npos;
  if (items[0].is<Dict>())
    return std::ranges::any_of(items[0].as<Dict>()->entries,
                               [&](const auto& entry) { return same(entry.first, items[1]); });
  return std::ranges::any_of(list(items[0])->elements,
                             [&](const Item& element) { return same(element, items[1]); });
}

Item keys(Items items) {
  std::vector<Item> keys;
  for (const auto& [key, value] : dictionary(items[0])->entries) keys.push_back(key);
  return Item::list(std::move(keys));
}
Item values(Items items) {
  std::vector<Item> values;
  for (const auto& [key, value] : dictionary(items[0])->entries) values.push_back(value);
  return Item::list(std::move(values));
}
Item entries(Items items) {
  std::vector<Item> entries;
  for (const auto& [key, value] : dictionary(items[0])->entries) entries.push_back(Item::tuple({key, value}));
  return Item::list(std::move(entries));
}
Item get(Items items) {
  for (const auto& [key, value] : dictionary(items[0])->entries)
    if (same(key, items[1])) return value;
  return items.size() > 2 ? items[2] : Item();
}

// "{} and {}".format(a, b)
Item format(Items items) {
  std::string formatted;
  const std::string& pattern = text(items[0]);
  size_t used = 1;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.compare(at, 2, "{}") == 0 && used < items.size()) {
      formatted += items[used++].text();
      ++at;
    } else {
      formatted += pattern[at];
    }
  }
  check_count(formatted.size());
  return formatted;
}
Item as_text(Items items) { return items[0].text(); }

// ---- of tensors

Item size(Items items) {
  const nn::Tensor& of = tensor(items[0]);
  if (items.size() == 1) return integers(of.sizes());
  const int64_t dim = whole(items[1]);
  if (dim < -of.dim() || dim >= of.dim()) fail("size {} of a tensor of {} dimensions", dim, of.dim());
  return of.size(dim);
}
Item dimensions(Items items) { return tensor(items[0]).dim(); }
Item elements_of_tensor(Items items) {
  int64_t count = 1;
  for (const int64_t size : tensor(items[0]).sizes()) count *= size;
  return count;
}
Item dtype_of(Items items) { return tensor(items[0]).dtype(); }
Item device_of(Items items) {
  const Device device = tensor(items[0])->geometry.device();
  return device.is_cuda() ? kModelDevice : device;
}
Item is_on_device(Items items) { return tensor(items[0])->geometry.device().is_cuda(); }
Item element_bytes(Items items) { return element_size(tensor(items[0]).dtype().dtype); }
Item floating(Items items) { return is_floating(tensor(items[0]).dtype().dtype); }
Item complex(Items items) { return is_complex(tensor(items[0]).dtype().dtype); }
Item contiguous(Items items) { return tensor(items[0]).is_contiguous(); }
Item type_of_device(Items items) {
  if (!items[0].is<Device>()) fail("expected a device, got {}", items[0].kind());
  return std::string(items[0].as<Device>().is_cuda() ? "cuda" : "cpu");
}
Item index_of_device(Items items) { return items[0].as<Device>().is_cuda() ? Item(int64_t{0}) : Item(); }

// ---- constants of a run

Item yes(Items) { return true; }
Item no(Items) { return false; }
Item nothing(Items) { return {}; }
Item zero(Items) { return int64_t{0}; }
Item first(Items items) { return items[0]; }
Item is_same(Items items) { return same(items[0], items[1]); }
Item is_other(Items items) { return !same(items[0], items[1]); }
Item integer_of(Items items) { return as_integer(items[0]); }
Item real_of(Items items) { return as_real(items[0]); }
Item truth_of(Items items) { return truth(items[0]); }

[[noreturn]] Item raise(Items items) {
  const std::string what = items.empty() ? "an exception" : items[0].text();
  fail("the model raises: {}", what);
}

struct Row {
  std::string_view name;
  Item (*function)(Items);
  size_t arguments;         // that it needs
  bool of_tensors = false;  // a tensor may be among them; else the call is an operator's
};

constexpr bool kOfTensors = true;

constexpr Row kRows[] = {
    {"torch.add", add, 2},
    {"torch.add_", extend, 2},
    {"torch.sub", subtract, 2},
    {"torch.mul", multiply, 2},
    {"torch.floordiv", floor_divide, 2},
    {"torch.floor_divide", floor_divide, 2},
    {"torch.remainder", remainder_of, 2},
    {"torch.div", divide, 2},
    {"torch.pow", power, 2},
    {"torch.neg", negative, 1},
    {"torch.sqrt", real_function<square_root>, 1},
    {"torch.log", real_function<natural_logarithm>, 1},
    {"torch.exp", real_function<exponential>, 1},
    {"torch.floor", rounded<down>, 1},
    {"torch.ceil", rounded<up>, 1},
    {"torch.round", round_half_even, 1},
    {"torch.abs", absolute, 1},
    {"ops.prim.abs", absolute, 1},
    {"ops.prim.max", extreme<true>, 1},
    {"ops.prim.min", extreme<false>, 1},
    {"torch.max", extreme<true>, 1},
    {"torch.min", extreme<false>, 1},
    {"torch.sum", total, 1},
    {"torch.any", any, 1},
    {"torch.all", all, 1},
    {"torch.eq", equal, 2},
    {"torch.ne", unequal, 2},
    {"torch.lt", ordered<std::less<>>, 2},
    {"torch.le", ordered<std::less_equal<>>, 2},
    {"torch.gt", ordered<std::greater<>>, 2},
    {"torch.ge", ordered<std::greater_equal<>>, 2},
    {"torch.__and__", both, 2},
    {"torch.__or__", either, 2},
    {"torch.__not__", negation, 1, kOfTensors},
    {"torch.__is__", is_same, 2, kOfTensors},
    {"torch.__isnot__", is_other, 2, kOfTensors},
    {"torch.__contains__", contains, 2, kOfTensors},
    {"torch.len", length, 1, kOfTensors},
    {"torch.append", append, 2, kOfTensors},
    {"torch.extend", extend, 2},
    {"torch.insert", insert, 3, kOfTensors},
    {"torch.pop", pop, 1},
    {"torch.clear", clear, 1},
    {"torch.reverse", reverse, 1},
    {"torch.copy", copied, 1},
    {"torch.list", as_list, 1},
    {"torch.slice", slice, 1},
    {"torch._set_item", set_item, 3, kOfTensors},
    {"torch.keys", keys, 1},
    {"torch.values", values, 1},
    {"torch.items", entries, 1},
    {"torch.get", get, 2, kOfTensors},
    {"torch.format", format, 1, kOfTensors},
    {"torch.str", as_text, 1, kOfTensors},
    {"torch.size", size, 1, kOfTensors},
    {"torch.dim", dimensions, 1, kOfTensors},
    {"torch.numel", elements_of_tensor, 1, kOfTensors},
    {"torch.element_size", element_bytes, 1, kOfTensors},
    {"torch.is_floating_point", floating, 1, kOfTensors},
    {"torch.is_complex", complex, 1, kOfTensors},
    {"torch.is_contiguous", contiguous, 1, kOfTensors},
    {"ops.prim.dtype", dtype_of, 1, kOfTensors},
    {"ops.prim.device", device_of, 1, kOfTensors},
    {"ops.prim.is_cuda", is_on_device, 1, kOfTensors},
    {"ops.prim.type", type_of_device, 1},
    {"ops.prim.index", index_of_device, 1},
    {"ops.prim.layout", zero, 1, kOfTensors},
    {"ops.prim.is_nested", no, 1, kOfTensors},
    {"ops.prim.is_sparse", no, 1, kOfTensors},
    {"ops.prim.is_quantized", no, 1, kOfTensors},
    {"ops.prim.is_mkldnn", no, 1, kOfTensors},
    {"ops.prim.is_meta", no, 1, kOfTensors},
    {"ops.prim.unchecked_unwrap_optional", first, 1, kOfTensors},
    {"ops.prim.data", first, 1, kOfTensors},
    {"ops.prim.NumToTensor", first, 1},
    {"ops.prim.RaiseException", raise, 0, kOfTensors},
    {"torch.Int", integer_of, 1, kOfTensors},
    {"torch.Float", real_of, 1, kOfTensors},
    {"torch.Bool", truth_of, 1, kOfTensors},
    {"torch.IntImplicit", integer_of, 1, kOfTensors},
    {"torch.FloatImplicit", real_of, 1, kOfTensors},
    {"torch.ScalarImplicit", integer_of, 1, kOfTensors},
    {"torch.warn", nothing, 0, kOfTensors},
    {"torch.is_autocast_enabled", no, 0},
    {"torch._get_tracing_state", no, 0},
    {"torch.is_scripting", yes, 0},
};

const Row* row_named(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const Row*> by_name;
    for (const Row& row : kRows) by_name.emplace(row.name, &row);
    return by_name;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

}  // namespace

std::optional<Item> call_builtin(std::string_view name, std::span<const Item> arguments) {
  const Row* row = row_named(name);
  if (!row) return std::nullopt;
  if (!row->of_tensors && std::ranges::any_of(arguments, &Item::is_tensor)) return std::nullopt;
  if (arguments.size() < row->arguments) fail("{}: {} arguments are too few", name, arguments.size());
  return row->function(arguments);
}

Item element_of(const Item& whole_item, const Item& index) {
  if (whole_item.is_sequence())
    return whole_item.elements()[place_in(whole_item.elements().size(), whole(index))];
  if (whole_item.is<std::string>()) {
    const std::string& letters = whole_item.as<std::string>();
    return std::string(1, letters[place_in(letters.size(), whole(index))]);
  }
  for (const auto& [key, value] : dictionary(whole_item)->entries)
    if (same(key, index)) return value;
  fail("a dictionary has no entry {}", index.text());
}

bool truth(const Item& item) {
  if (item.is<bool>()) return item.as<bool>();
  return number(item).real() != 0;
}

Item as_integer(const Item& item) {
  if (item.is<std::string>()) fail("int() of a text");
  if (!number(item).is<double>()) return item.integer();
  if (!(std::abs(item.real()) < 9.2e18)) too_large();
  return static_cast<int64_t>(item.real());
}

Item as_real(const Item& item) {
  if (!item.is<std::string>()) return number(item).real();
  const std::string& words = item.as<std::string>();
  if (words == "inf") return std::numeric_limits<double>::infinity();
  if (words == "-inf") return -std::numeric_limits<double>::infinity();
  if (words == "nan") return std::numeric_limits<double>::quiet_NaN();
  fail("float() of '{}'", words);
}

}  // namespace metaprof::script
