#pragma once

#include <CLI/CLI.hpp>

namespace metaprof {

/// Help that begins with examples: a command's description is shown whole by its own --help, and by its first
/// line in the list of commands. An option's default stands in brackets behind what it does.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace metaprof
