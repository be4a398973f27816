#include "program/torchscript/item.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace metaprof::script {
namespace {

constexpr size_t kLongestText = 1'000'000;
constexpr int kMostComparisons = 20'000;

constexpr int kDeepestList = 200;

void check_depth(int depth) {
  if (depth > kDeepestList) fail("lists stand in each other more than {} deep", kDeepestList);
}

template <class Collection>
void free_inside(Collection& collection) noexcept {
  try {
    std::vector<Item> items;
    collection.release(items);
    while (!items.empty()) {
      Item item = std::move(items.back());
      items.pop_back();
      item.release(items);
    }
  } catch (...) {  // no memory for the list of what is left: it is freed as its owners are
  }
}

}  // namespace

Sequence::~Sequence() { free_inside(*this); }
Dictionary::~Dictionary() { free_inside(*this); }
Object::~Object() { free_inside(*this); }

void Sequence::release(std::vector<Item>& into) { std::ranges::move(elements, std::back_inserter(into)); }
void Dictionary::release(std::vector<Item>& into) {
  for (auto& [key, value] : entries) {
    into.push_back(std::move(key));
    into.push_back(std::move(value));
  }
}
void Object::release(std::vector<Item>& into) {
  for (auto& [name, value] : attributes) into.push_back(std::move(value));
}

void Item::release(std::vector<Item>& into) {
  const auto release_shared = [&](auto& held) {
    if constexpr (requires { held->release(into); })
      if (held && held.use_count() == 1) held->release(into);
  };
  std::visit(release_shared, value_);
}

Item Item::list(std::vector<Item> elements) {
  auto list = std::make_shared<Sequence>();
  list->elements = std::move(elements);
  return list;
}

Item Item::tuple(std::vector<Item> elements, const Class* type) {
  auto tuple = std::make_shared<Sequence>();
  tuple->elements = std::move(elements);
  tuple->is_tuple = true;
  tuple->type = type;
  return tuple;
}

int64_t Item::integer() const {
  if (is<bool>()) return as<bool>();
  if (is<nn::DTypeOf>()) return static_cast<int64_t>(as<nn::DTypeOf>().dtype);
  return as<int64_t>();
}

double Item::real() const { return is<double>() ? as<double>() : static_cast<double>(integer()); }

std::string Item::kind() const {
  if (is_none()) return "None";
  if (is<bool>()) return "a boolean";
  if (is_integer()) return "an integer";
  if (is<double>()) return "a real number";
  if (is<std::string>()) return "a text";
  if (is_tensor()) return "a tensor";
  if (is<Device>()) return "a device";
  if (is_sequence()) return as<List>()->is_tuple ? "a tuple" : "a list";
  if (is<std::shared_ptr<Dictionary>>()) return "a dictionary";
  if (is<Callable>()) return "a function";
  return as<std::shared_ptr<Object>>()->type->is_module ? "a module" : "an object";
}

std::string Item::text() const {
  std::string written;
  write_text(written, 0);
  return written;
}

void Item::write_text(std::string& into, int depth) const {
  check_depth(depth);
  if (into.size() > kLongestText) fail("a text of more than {} characters", kLongestText);
  if (is_sequence()) {
    const bool is_tuple = as<List>()->is_tuple;
    into += is_tuple ? '(' : '[';
    for (const Item& element : elements()) {
      if (&element != elements().data()) into += ", ";
      element.write_text(into, depth + 1);
    }
    into += is_tuple ? ')' : ']';
    return;
  }
  into += text_of_single();
}

std::string Item::text_of_single() const {
  if (is<bool>()) return as<bool>() ? "True" : "False";
  if (is_integer()) return std::to_string(integer());
  if (is<double>()) return fmt::format("{}", as<double>());
  if (is<std::string>()) return as<std::string>();
  if (is<Device>()) return as<Device>().is_cuda() ? "cuda" : "cpu";
  return kind();
}

namespace {

bool equal(const Item& a, const Item& b, int& budget, int depth);

bool equal_sequences(const Item::List& a, const Item::List& b, int& budget, int depth) {
  if (a == b) return true;
  return std::ranges::equal(a->elements, b->elements,
                            [&](const Item& x, const Item& y) { return equal(x, y, budget, depth); });
}

// `budget`: comparisons that are left. A list may stand in several others, or in itself.
bool equal(const Item& a, const Item& b, int& budget, int depth) {
  check_depth(depth);
  if (--budget < 0) fail("lists of more than {} elements are compared", kMostComparisons);
  if (a.is_number() && b.is_number()) {
    if (a.is<double>() || b.is<double>()) return a.real() == b.real();
    return a.integer() == b.integer();
  }
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is<std::string>() && b.is<std::string>()) return a.as<std::string>() == b.as<std::string>();
  if (a.is<Device>() && b.is<Device>()) return a.as<Device>() == b.as<Device>();
  if (a.is_tensor() && b.is_tensor()) return &*a.as<nn::Tensor>() == &*b.as<nn::Tensor>();
  if (a.is_sequence() && b.is_sequence())
    return equal_sequences(a.as<Item::List>(), b.as<Item::List>(), budget, depth + 1);
  if (a.is<std::shared_ptr<Object>>() && b.is<std::shared_ptr<Object>>())
    return a.as<std::shared_ptr<Object>>() == b.as<std::shared_ptr<Object>>();
  return false;
}

}  // namespace

bool same(const Item& a, const Item& b) {
  int budget = kMostComparisons;
  return equal(a, b, budget, 0);
}

}  // namespace metaprof::script
