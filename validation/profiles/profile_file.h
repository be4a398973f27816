#pragma once
// A report that `metaprof profile --json` wrote.

#include <string>

#include "core/formats/json_member.h"

namespace metaprof {

class ProfileFile {
 public:
  /// `name`: of the file, for messages. Errors, with the name and the member: no JSON, another schema or version.
  ProfileFile(const std::string& name, std::string text);
  /// Reads the file. Errors, too: there is no such file, it is too large.
  explicit ProfileFile(const std::string& path);

  const std::string& name() const { return name_; }
  Member root() const { return json_.root(); }

 private:
  std::string name_;
  JsonText json_;
};

}  // namespace metaprof
