#pragma once
// The command line: commands, their options, and what is said of words that are none. The library that parses
// (CLI11) is seen in command_line.cpp alone.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line/command_facts.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
class Option;
}  // namespace CLI

namespace metaprof {

/// An option that was added; each call says more of it.
class AddedOption {
 public:
  explicit AddedOption(CLI::Option* option) : option_(option) {}
  /// What help shows for the value: "FILE", "N".
  AddedOption& value(const std::string& shown);
  AddedOption& group(const std::string& title);
  AddedOption& help(const std::string& text);
  AddedOption& required(bool is = true);
  /// Help shows the value as it is now, or this text, as what holds unless the option is given.
  AddedOption& with_default();
  AddedOption& with_default(const std::string& text);
  /// Each takes one value, also where it may be given several times.
  AddedOption& one_value();
  /// It may also stand without a value, and then has this one.
  AddedOption& value_if_given(const std::string& value);
  AddedOption& separated_by(char letter);
  /// Errors in the command line: anything else.
  AddedOption& one_of(std::vector<std::string> words);
  AddedOption& from_to(double least, double most);
  AddedOption& above(double least);

 private:
  CLI::Option* option_;
};

/// A command that was added. A value, which stands for it.
class Command {
 public:
  Command(CLI::App* app, int* exit_code, const std::vector<std::string>* typed)
      : app_(app), exit_code_(exit_code), typed_(typed) {}

  /// Options ("--json", "--output,--json") and positional words ("MODEL"); the variable must outlive the parsing.
  AddedOption option(const std::string& name, std::string& value, const std::string& help);
  AddedOption option(const std::string& name, int& value, const std::string& help);
  AddedOption option(const std::string& name, int64_t& value, const std::string& help);
  AddedOption option(const std::string& name, double& value, const std::string& help);
  AddedOption option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  AddedOption flag(const std::string& name, bool& value, const std::string& help);
  /// Calls `take` with what was typed; `repeated`: for each of several.
  AddedOption option(const std::string& name, std::function<void(const std::string&)> take,
                     const std::string& help, bool repeated = false);
  AddedOption flag(const std::string& name, std::function<void()> take, const std::string& help);

  AddedOption existing(const std::string& name) const;
  /// On the command line: a default from the environment is not given.
  bool was_given(std::string_view name) const;
  /// Where the option is not on the command line, this environment variable is taken if it is set.
  void take_environment(const std::string& name, const std::string& variable);
  /// What follows the first word that is no option belongs to it.
  void positionals_at_end();
  /// The command; it gives the exit status.
  void on_run(std::function<int()> run);

 private:
  CLI::App* app_;
  int* exit_code_;
  const std::vector<std::string>* typed_;
};

class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// A description begins with a line for the list of commands; --help shows all of it.
  Command add(const std::string& name, const std::string& description);
  /// One that was added.
  Command existing(const std::string& name);
  /// Runs the command that the words name, and gives its exit status. Errors: there is no such command or
  /// option, a value is not as it must be; and those of the command.
  int run(int count, char** words);
  /// Options alone: words have no place in completions.
  std::vector<CommandFacts> commands() const;
  /// Takes a file of defaults (CLI11's TOML): `device = "rtx4090"` is METAPROF_DEVICE=rtx4090 where that is not set,
  /// below [fit] for that command alone. Errors: the file cannot be read; it names an option that has no such variable.
  void take_defaults(const std::string& file, std::string_view command) const;

 private:
  void expect_command(int count, char** words) const;
  std::string unknown_word(int count, char** words) const;
  bool show_short_help(int count, char** words) const;

  std::unique_ptr<CLI::App> app_;
  int exit_code_ = 0;
  std::vector<std::string> typed_;  ///< the words of the command line
};

}  // namespace metaprof
