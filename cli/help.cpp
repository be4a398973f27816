#include "cli/help.h"

namespace metaprof {

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  const std::string description = command->get_description();
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_name(), description.substr(0, description.find('\n')),
                           column_width_);
  return out.str();
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  return option->get_option_text().empty() ? "" : " " + option->get_option_text();
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string standard = option->get_default_str();
  return option->get_description() + (standard.empty() ? "" : " [" + standard + "]");
}

}  // namespace metaprof
