#include "cli/line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>

#include "cli/line/short_help.h"
#include "core/error.h"
#include "core/formats/file.h"
#include "core/option_value.h"

namespace metaprof {
namespace {

// Help that begins with examples: a command's description is shown whole by its own --help, and by its first
// line in the list of commands. An option's default stands in brackets behind what it does.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string description = command->get_description();
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), description.substr(0, description.find('\n')),
                             column_width_);
    return out.str();
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_option_text().empty() ? "" : " " + option->get_option_text();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string standard = option->get_default_str();
    return option->get_description() + (standard.empty() ? "" : " [" + standard + "]");
  }
};

// "--json: 1 required TEXT missing" is "--json needs a value: FILE". Another message is as it was.
std::string missing_value(const CLI::App& command, const std::string& message) {
  const size_t colon = message.find(": 1 required ");
  if (colon == std::string::npos) return message;
  const std::string name = message.substr(0, colon);
  for (const CLI::Option* option : command.get_options())
    if (option->get_name() == name)
      return fmt::format("{} needs a value: {}", name, option->get_option_text());
  return message;
}

}  // namespace

AddedOption& AddedOption::value(const std::string& shown) {
  option_->option_text(shown);
  return *this;
}
AddedOption& AddedOption::group(const std::string& title) {
  option_->group(title);
  return *this;
}
AddedOption& AddedOption::help(const std::string& text) {
  option_->description(text);
  return *this;
}
AddedOption& AddedOption::required(bool is) {
  option_->required(is);
  return *this;
}
AddedOption& AddedOption::with_default() {
  option_->capture_default_str();
  return *this;
}
AddedOption& AddedOption::with_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}
AddedOption& AddedOption::one_value() {
  option_->allow_extra_args(false);
  return *this;
}
AddedOption& AddedOption::value_if_given(const std::string& value) {
  option_->expected(0, 1)->default_str(value);
  return *this;
}
AddedOption& AddedOption::separated_by(char letter) {
  option_->delimiter(letter);
  return *this;
}
AddedOption& AddedOption::one_of(std::vector<std::string> words) {
  option_->check(CLI::IsMember(std::move(words)));
  return *this;
}
AddedOption& AddedOption::from_to(double least, double most) {
  option_->check(CLI::Validator(
      [least, most](const std::string& text) {
        double number = 0;
        const bool is = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
        return is ? std::string() : fmt::format("'{}' is not from {:.0f} to {:.0f}", text, least, most);
      },
      ""));
  return *this;
}
AddedOption& AddedOption::above(double least) {
  option_->check(CLI::Validator(
      [least](const std::string& text) {
        double number = 0;
        const bool is = CLI::detail::lexical_cast(text, number) && number > least;
        return is ? std::string() : fmt::format("'{}' is not above {:g}", text, least);
      },
      ""));
  return *this;
}

AddedOption Command::option(const std::string& name, std::string& value, const std::string& help) {
  return AddedOption(app_->add_option(name, value, help));
}
AddedOption Command::option(const std::string& name, int& value, const std::string& help) {
  return AddedOption(app_->add_option(name, value, help));
}
AddedOption Command::option(const std::string& name, int64_t& value, const std::string& help) {
  return AddedOption(app_->add_option(name, value, help));
}
AddedOption Command::option(const std::string& name, double& value, const std::string& help) {
  return AddedOption(app_->add_option(name, value, help));
}
AddedOption Command::option(const std::string& name, std::vector<std::string>& value,
                            const std::string& help) {
  return AddedOption(app_->add_option(name, value, help));
}
AddedOption Command::flag(const std::string& name, bool& value, const std::string& help) {
  return AddedOption(app_->add_flag(name, value, help));
}

AddedOption Command::option(const std::string& name, std::function<void(const std::string&)> take,
                            const std::string& help, bool repeated) {
  if (!repeated) return AddedOption(app_->add_option_function<std::string>(name, take, help));
  return AddedOption(app_->add_option_function<std::vector<std::string>>(
      name,
      [take = std::move(take)](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) take(text);
      },
      help));
}
AddedOption Command::flag(const std::string& name, std::function<void()> take, const std::string& help) {
  return AddedOption(app_->add_flag_callback(name, std::move(take), help));
}

AddedOption Command::existing(const std::string& name) const { return AddedOption(app_->get_option(name)); }
bool Command::was_given(std::string_view name) const {
  return app_->get_option(std::string(name))->count() > 0 &&
         std::ranges::any_of(*typed_, [&](const std::string& word) {
           return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
         });
}
void Command::take_environment(const std::string& name, const std::string& variable) {
  app_->get_option(name)->envname(variable);
}
void Command::positionals_at_end() { app_->positionals_at_end(); }
void Command::on_run(std::function<int()> run) {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
}

CommandLine::CommandLine(const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, "metaprof")) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->get_formatter()->column_width(28);
}
CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  return {app_->add_subcommand(name, description), &exit_code_, &typed_};
}

Command CommandLine::existing(const std::string& name) {
  return {app_->get_subcommand(name), &exit_code_, &typed_};
}

std::vector<CommandFacts> CommandLine::commands() const {
  std::vector<CommandFacts> all;
  for (const CLI::App* command : app_->get_subcommands({})) {
    CommandFacts facts{.name = command->get_name(), .description = command->get_description(), .options = {}};
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        facts.options.push_back(
            {"--" + name, option->get_option_text(), option->get_description(), option->get_group()});
    all.push_back(std::move(facts));
  }
  return all;
}

void CommandLine::expect_command(int count, char** words) const {
  std::string names;
  std::vector<std::string> known;
  for (const CLI::App* command : app_->get_subcommands({})) {
    if (count > 1 && command->get_name() == words[1]) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
    known.push_back(command->get_name());
  }
  if (count < 2) fail("which command? There are {}; metaprof --help shows examples", names);
  const std::string_view word = words[1];
  if (!word.starts_with('-'))
    fail("there is no command '{}'; there are {}{}", word, names, did_you_mean(word, known));
  if (word != "-h" && word != "--help" && word != "--version")
    fail("the command comes before '{}'; there are {}", word, names);
}

// "there is no option '--devcie'; did you mean '--device'?"; empty: all options are known.
std::string CommandLine::unknown_word(int count, char** words) const {
  for (const CLI::App* command : app_->get_subcommands()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (int i = 2; i < count; ++i) {
      const std::string word = std::string(words[i]).substr(0, std::string_view(words[i]).find('='));
      if (word == "--") break;
      if (word.starts_with("--") && std::ranges::find(known, word) == known.end())
        return fmt::format("there is no option '{}'{}", word, did_you_mean(word, known));
    }
  }
  return "";
}

void CommandLine::take_defaults(const std::string& file, std::string_view command) const {
  std::map<std::string, std::string> variables;
  std::vector<std::string> names;
  for (const CLI::App* known : app_->get_subcommands({}))
    for (const CLI::Option* option : known->get_options())
      if (!option->get_envname().empty() &&
          variables.emplace(option->get_lnames().at(0), option->get_envname()).second)
        names.push_back(option->get_lnames()[0]);
  constexpr size_t kMostBytes = size_t{1} << 20;
  std::istringstream text(read_file(file, kMostBytes, "a file of defaults"));
  const std::vector<CLI::ConfigItem> items = CLI::ConfigTOML().from_config(text);
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
    std::string name = item.name;
    std::ranges::replace(name, '_', '-');
    const auto variable = variables.find(name);
    if (variable == variables.end())
      fail("{}: '{}' is not an option with a default; metaprof profile --help lists them{}", file, item.name,
           did_you_mean(name, names));
    const bool is_command = std::ranges::any_of(app_->get_subcommands({}), [&](const CLI::App* known) {
      return item.parents == std::vector{known->get_name()};
    });
    if (!item.parents.empty() && !is_command)
      fail("{}: there is no command [{}]", file, CLI::detail::join(item.parents, "."));
    if (!item.parents.empty() && item.parents[0] != command) continue;
    setenv(variable->second.c_str(), CLI::detail::join(item.inputs, ",").c_str(), 0);
  }
}

// -h behind a command. False: there is none.
bool CommandLine::show_short_help(int count, char** words) const {
  const std::vector<std::string_view> typed(words + 2, words + std::max(count, 2));
  const auto end = std::ranges::find(typed, "--");
  if (std::find(typed.begin(), end, "-h") == end) return false;
  for (CommandFacts facts : commands()) {
    if (facts.name != words[1]) continue;
    for (const CLI::Option* option : app_->get_subcommand(facts.name)->get_options())
      if (option->get_positional())
        facts.options.push_back({option->get_name(), "", option->get_description(), option->get_group()});
    std::cout << short_help(facts);
    return true;
  }
  return false;
}

int CommandLine::run(int count, char** words) {
  char version[] = "--version", *asked_version[] = {words[0], version};
  if (count == 2 && std::string_view(words[1]) == "version") words = asked_version;
  // "metaprof help fit" is "metaprof fit --help", and "metaprof help" is "metaprof --help".
  char help[] = "--help", *asked[] = {words[0], count > 2 ? words[2] : help, help};
  if (count > 1 && std::string_view(words[1]) == "help") count = count > 2 ? 3 : 2, words = asked;
  expect_command(count, words);
  if (show_short_help(count, words)) return 0;
  typed_.assign(words + 1, words + count);
  try {
    app_->parse(count, words);
  } catch (const CLI::Success& shown) {  // --help, --version
    app_->exit(shown);
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto commands = app_->get_subcommands();
    const std::string unknown = unknown_word(count, words);
    const std::string said = commands.empty() ? error.what() : missing_value(*commands[0], error.what());
    fail("{} ('metaprof{} --help' shows the options)", unknown.empty() ? said : unknown,
         commands.empty() ? "" : " " + commands[0]->get_name());
  }
  return exit_code_;
}

}  // namespace metaprof
