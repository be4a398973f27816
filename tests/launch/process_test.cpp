#include "capture/launch/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/host_memory.h"

namespace metaprof {
namespace {

ProcessEnd run(std::vector<std::string> words) {
  ProcessOptions options;
  options.words = std::move(words);
  return run_process(options);
}

ProcessEnd shell(const std::string& text, double timeout = 0) {
  ProcessOptions options;
  options.words = {"sh", "-c", text};
  options.timeout = timeout;
  return run_process(options);
}

std::string content(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ProcessTest : public testing::Test {
 protected:
  std::string file() {
    return testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void SetUp() override { std::filesystem::remove(file()); }
  void TearDown() override { std::filesystem::remove(file()); }
};

TEST_F(ProcessTest, GivesTheExitStatus) {
  EXPECT_EQ(shell("exit 0").status, 0);
  EXPECT_EQ(shell("exit 7").status, 7);
}

TEST_F(ProcessTest, WhatItPrintsIsThrownAway) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      run_process(
          {.words = {"sh", "-c", "echo seen; echo seen >&2; exit 3"}, .environment = {}, .silent = true})
          .status,
      3);
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

TEST_F(ProcessTest, ASignalIsTold) {
  const ProcessEnd end = shell("kill -SEGV $$");
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.status, 128 + SIGSEGV);
}

TEST_F(ProcessTest, AProgramThatDoesNotExist) {
  try {
    run({"no-such-program"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no-such-program: there is no such program");
  }
}

TEST_F(ProcessTest, AFileThatIsNoProgram) {
  std::ofstream(file()) << "text";
  try {
    run({file()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), file() + ": cannot be run (Permission denied)");
  }
}

TEST_F(ProcessTest, TheEnvironmentIsAddedTo) {
  ProcessOptions options;
  options.words = {"sh", "-c", "echo $ADDED ${HOME-none} ${PATH:+path} > " + file()};
  options.environment = {{"ADDED", "yes"}, {"HOME", ""}};
  run_process(options);
  EXPECT_EQ(content(file()), "yes path\n");
}

TEST_F(ProcessTest, EndsAfterTheTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  const ProcessEnd end = shell("sleep 100", 0.2);
  EXPECT_TRUE(end.timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ProcessTest, EndsAProgramThatDoesNotWantToEnd) {
  const ProcessEnd end = shell("trap '' TERM; while :; do sleep 0.1; done", 0.2);
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.signal, SIGKILL);
}

// A child that has left its group and its session is ended all the same.
TEST_F(ProcessTest, LeavesNoProcessBehind) {
  const ProcessEnd end = shell("setsid sleep 1000 & echo $! > " + file());
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.ended_descendants, 1);
  EXPECT_NE(kill(std::stoi(content(file())), 0), 0);
}

TEST_F(ProcessTest, ChildrenThatEndByThemselvesAreNotCounted) {
  EXPECT_EQ(shell("sleep 0.1 &").ended_descendants, 0);
}

TEST_F(ProcessTest, PassesSignalsOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    std::signal(signal, SIG_DFL);  // whoever runs tests in the background has them ignored
    ProcessOptions options;
    options.words = {"sh", "-c", "sleep 100"};
    options.poll = [signal, sent = false]() mutable {
      if (!sent) kill(getpid(), signal);
      sent = true;
    };
    EXPECT_EQ(run_process(options).signal, signal);
  }
}

// As `timeout` does, which signals the process and then its group.
TEST_F(ProcessTest, ASignalSentTwiceAtOnceIsOneRequest) {
  ProcessOptions options;
  options.words = {"sh", "-c", "trap 'echo asked >> " + file() + "' TERM; sleep 1.5 & wait; wait; exit 3"};
  options.poll = [sent = 0]() mutable {
    if (sent++ < 1)
      for (int i = 0; i < 2; ++i) kill(getpid(), SIGTERM);
  };
  EXPECT_EQ(run_process(options).status, 3);
  EXPECT_EQ(content(file()), "asked\n");
}

TEST_F(ProcessTest, ASecondSignalEndsAProgramThatIgnoresTheFirst) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ProcessOptions options;
    options.words = {"sh", "-c", "trap '' INT TERM; while :; do sleep 0.1; done"};
    options.poll = [signal] { kill(getpid(), signal); };  // a few times a second
    EXPECT_EQ(run_process(options).signal, SIGKILL);
  }
}

TEST_F(ProcessTest, TheProgramHasTheLimitsThatThisOneWasStartedWith) {
  ProcessOptions options;
  options.words = {"sh", "-c", "ulimit -v > " + file()};
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  limit_host_memory(int64_t{1} << 40);
  run_process(options);
  EXPECT_EQ(content(file()),
            before.rlim_cur == RLIM_INFINITY ? "unlimited\n" : std::to_string(before.rlim_cur / 1024) + "\n");
  lift_host_memory_limit();
}

}  // namespace
}  // namespace metaprof
