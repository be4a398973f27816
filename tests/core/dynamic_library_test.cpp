#include "core/dynamic_library.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DynamicLibrary, GivesFunctionsByTheirTypes) {
  const DynamicLibrary mathematics("libm.so.6");
  EXPECT_EQ(mathematics.function<double(double)>("floor")(2.5), 2);
}

TEST(DynamicLibrary, SaysWhatIsNotThere) {
  EXPECT_NE(error_of([] { DynamicLibrary("libnone.so.1"); }).find("libnone.so.1"), std::string::npos);
  EXPECT_TRUE(error_of([] { DynamicLibrary("libnone.so.1", "install none"); }).ends_with(": install none"));
  const DynamicLibrary mathematics("libm.so.6");
  EXPECT_EQ(error_of([&] { (void)mathematics.function<void()>("none"); }), "libm.so.6 has no function none");
}

}  // namespace
}  // namespace metaprof
