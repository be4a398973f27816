#include "validation/profiles/profile_file.h"

#include "core/formats/file.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytesOfProfileFile = uintmax_t{1} << 30;
constexpr const char* kHint = "a report is what `metaprof profile --json` writes";

}  // namespace

ProfileFile::ProfileFile(const std::string& name, std::string text)
    : name_(name), json_(std::move(text), name, kHint) {
  const Member schema = root().at("schema"), version = root().at("schema_version");
  if (schema.text() != "metaprof.profile" && schema.text() != "metaprof.baseline")
    schema.reject("\"metaprof.profile\"");
  if (version.count() != 1) version.reject("1");
}

ProfileFile::ProfileFile(const std::string& path)
    : ProfileFile(path, read_file(path, kMostBytesOfProfileFile, "a report of a step")) {}

}  // namespace metaprof
