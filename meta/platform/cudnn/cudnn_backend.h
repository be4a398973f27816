#pragma once
// cuDNN's backend API, loaded at run time: descriptors that are made, filled and finished, and read again.
// Numbers and signatures are those of cudnn_graph.h (cuDNN 9; they are the library's binary interface).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace metaprof::cudnn {

enum class Type : int {
  handle = 0,
  data_type = 1,
  int64 = 3,
  real32 = 4,
  real64 = 5,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  numerical_note = 11,
  descriptor = 15,
  character = 24,
};

enum class Kind : int {
  convolution = 1,
  engine = 2,
  engine_configuration = 3,
  heuristics = 4,
  execution_plan = 5,
  forward = 10,
  weight_gradient = 11,
  data_gradient = 12,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  device = 38,
};

using Descriptor = void*;

/// The library. Errors: it cannot be loaded, or lacks a function.
class Library {
 public:
  explicit Library(const std::string& path);

  int64_t version() const { return static_cast<int64_t>(version_()); }

 private:
  friend class Descriptors;
  template <class Function>
  void find(Function& function, const char* name);

  std::string path_;
  void* handle_;
  size_t (*version_)();
  int (*create_)(int kind, Descriptor*);
  int (*destroy_)(Descriptor);
  int (*finalize_)(Descriptor);
  int (*set_)(Descriptor, int attribute, int type, int64_t count, const void*);
  int (*get_)(Descriptor, int attribute, int type, int64_t wanted, int64_t* count, void*);
};

/// The descriptors of one question; gone with it.
class Descriptors {
 public:
  explicit Descriptors(const Library& library) : library_(library) {}
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  Descriptor make(Kind kind);
  /// Whether the library knows this kind.
  bool can_make(Kind kind);
  void set(Descriptor descriptor, int attribute, Type type, int64_t count, const void* values);
  void set(Descriptor descriptor, int attribute, Descriptor value);
  void set(Descriptor descriptor, int attribute, std::span<const int64_t> values);
  void set_number(Descriptor descriptor, int attribute, Type type, int value);
  void finish(Descriptor descriptor);
  /// The same; false if the library refuses.
  bool try_to_finish(Descriptor descriptor);

  int64_t integer(Descriptor descriptor, int attribute);
  /// Descriptors that another one holds, all of one kind.
  std::vector<Descriptor> held(Descriptor descriptor, int attribute, Kind kind);
  std::vector<int> numbers(Descriptor descriptor, int attribute, Type type, int64_t most);

 private:
  void check(int status, const char* what) const;

  const Library& library_;
  std::vector<Descriptor> made_;
};

}  // namespace metaprof::cudnn
