#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace metaprof {

/// A file of the checkout; tests run in its root.
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path << " cannot be read";
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace metaprof
