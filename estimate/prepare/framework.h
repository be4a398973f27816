#pragma once
// Which version of PyTorch an estimate is for.

#include <string>

#include "meta/platform/framework.h"
#include "program/program.h"
#include "step/options.h"

namespace metaprof {

struct FrameworkChoice {
  FrameworkVersion version;
  std::string_view
      reason;  ///< "as asked", "which wrote the model", "which ran the program", "the newest that is known"
  std::string warning;  ///< its rules are not known, and whose are taken; empty: they are
};

/// The version that --framework names. Errors: it is none, or is not known.
FrameworkVersion framework_given(const RunOptions& options);

/// The version that --framework names, else the one that wrote the program or ran it, else the newest that is
/// known. Errors: --framework is no version.
FrameworkChoice framework_for(const RunOptions& options, const Program& program);

/// The allocator's settings: --alloc-conf, or what --env says as far as this version reads it.
std::string allocator_settings(const RunOptions& options, const Framework& framework);

}  // namespace metaprof
