#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace metaprof {

// The message of the Error that `call` throws.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace metaprof
