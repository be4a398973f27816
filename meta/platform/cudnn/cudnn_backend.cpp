#include "meta/platform/cudnn/cudnn_backend.h"

#include <dlfcn.h>

#include "core/error.h"

namespace metaprof::cudnn {

template <class Function>
void Library::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle_, name));
  if (!function) fail("{} has no function {}", path_, name);
}

Library::Library(const std::string& path) : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW)) {
  if (!handle_) fail("{}", dlerror());
  find(version_, "cudnnGetVersion");
  find(create_, "cudnnBackendCreateDescriptor");
  find(destroy_, "cudnnBackendDestroyDescriptor");
  find(finalize_, "cudnnBackendFinalize");
  find(set_, "cudnnBackendSetAttribute");
  find(get_, "cudnnBackendGetAttribute");
}

Descriptors::~Descriptors() {
  for (size_t i = made_.size(); i-- > 0;) library_.destroy_(made_[i]);
}

void Descriptors::check(int status, const char* what) const {
  if (status != 0) fail("cuDNN refuses {} (status {})", what, status);
}

Descriptor Descriptors::make(Kind kind) {
  Descriptor descriptor = nullptr;
  check(library_.create_(static_cast<int>(kind), &descriptor), "a descriptor");
  made_.push_back(descriptor);
  return descriptor;
}

bool Descriptors::can_make(Kind kind) {
  Descriptor descriptor = nullptr;
  if (library_.create_(static_cast<int>(kind), &descriptor) != 0) return false;
  made_.push_back(descriptor);
  return true;
}

void Descriptors::set(Descriptor descriptor, int attribute, Type type, int64_t count, const void* values) {
  check(library_.set_(descriptor, attribute, static_cast<int>(type), count, values), "an attribute");
}

void Descriptors::set(Descriptor descriptor, int attribute, Descriptor value) {
  set(descriptor, attribute, Type::descriptor, 1, &value);
}

void Descriptors::set(Descriptor descriptor, int attribute, std::span<const int64_t> values) {
  set(descriptor, attribute, Type::int64, static_cast<int64_t>(values.size()), values.data());
}

void Descriptors::set_number(Descriptor descriptor, int attribute, Type type, int value) {
  set(descriptor, attribute, type, 1, &value);
}

void Descriptors::finish(Descriptor descriptor) { check(library_.finalize_(descriptor), "an operation"); }

bool Descriptors::try_to_finish(Descriptor descriptor) { return library_.finalize_(descriptor) == 0; }

int64_t Descriptors::integer(Descriptor descriptor, int attribute) {
  int64_t count = 0, value = -1;
  check(library_.get_(descriptor, attribute, static_cast<int>(Type::int64), 1, &count, &value), "a number");
  return value;
}

std::vector<Descriptor> Descriptors::held(Descriptor descriptor, int attribute, Kind kind) {
  const int type = static_cast<int>(Type::descriptor);
  int64_t count = 0;
  check(library_.get_(descriptor, attribute, type, 0, &count, nullptr), "a count");
  std::vector<Descriptor> found;
  for (int64_t i = 0; i < count; ++i) found.push_back(make(kind));
  if (count > 0) check(library_.get_(descriptor, attribute, type, count, &count, found.data()), "a list");
  found.resize(static_cast<size_t>(count));  // at times fewer than were announced
  return found;
}

std::vector<int> Descriptors::numbers(Descriptor descriptor, int attribute, Type type, int64_t most) {
  std::vector<int> values(static_cast<size_t>(most));
  int64_t count = 0;
  check(library_.get_(descriptor, attribute, static_cast<int>(type), most, &count, values.data()), "notes");
  values.resize(static_cast<size_t>(count));
  return values;
}

}  // namespace metaprof::cudnn
