#include "core/formats/json.h"

#include "tests/fuzz/fuzz.h"

namespace {

// Reads every value in every way that it has.
void visit(metaprof::Json value) {
  using Type = metaprof::Json::Type;
  (void)value.written();
  switch (value.type()) {
    case Type::list: value.for_each(visit); break;
    case Type::object:
      value.for_each_member([](std::string_view, metaprof::Json member) { visit(member); });
      break;
    case Type::string: (void)value.string(); break;
    case Type::number: (void)value.real(); break;
    case Type::boolean: (void)value.boolean(); break;
    case Type::null: break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  return metaprof::fuzz(bytes, count, [](const std::string& text) {
    const metaprof::JsonDocument document(text, "file.json");
    visit(document.root());
  });
}
