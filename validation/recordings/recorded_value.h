#pragma once
// Values as recordings print them: f32[4,3]/1,4+2g@7, (1 2), "text", 0.5, None …

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace metaprof {

/// A tensor of a recording. `storage` is the number that the recording gives, 0 for "no storage".
struct RecordedTensor {
  DType dtype = DType::f32;
  Sizes sizes, strides;
  int64_t offset = 0;  ///< in elements
  bool requires_grad = false;
  bool on_host = false;
  int64_t storage = 0;
  std::string
      layout;  ///< empty: strided; "sparse", "csr" (examples), or the framework's name of another layout
  std::vector<RecordedTensor> parts;  ///< sparse: indices and values; csr: rows, columns and values
};

struct RecordedValue {
  enum class Kind : uint8_t {
    none,
    tensor,
    boolean,
    integer,
    real,
    complex,
    text,
    list,
    device,
    generator,
    other
  };
  Kind kind = Kind::none;
  int64_t integer = 0;  ///< also a boolean's value
  double real = 0, imaginary = 0;
  std::string text;                    ///< of text, device and other
  std::vector<RecordedTensor> tensor;  ///< one, if it is a tensor
  std::vector<RecordedValue> list;
};

/// Whether tensors say which storage they have. Those of examples need not: each has one of its own.
enum class Storages : uint8_t { required, optional };

/// All values of a line. An Error says what cannot be read; the caller adds where.
std::vector<RecordedValue> parse_values(std::string_view text, Storages storages = Storages::required);
/// One tensor; nothing if the text is no tensor.
std::optional<RecordedTensor> parse_tensor(std::string_view text, Storages storages = Storages::required);

/// Calls `visit` with every tensor of a value, those within lists too.
template <class Visit>
void for_each_tensor(const RecordedValue& value, const Visit& visit) {
  for (const RecordedTensor& tensor : value.tensor) visit(tensor);
  for (const RecordedValue& element : value.list) for_each_tensor(element, visit);
}

}  // namespace metaprof
