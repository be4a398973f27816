#include "cli/line/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "step/options.h"

namespace metaprof {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string names_of(const std::vector<CommandFacts>& commands) {
  std::string names;
  for (const CommandFacts& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string options_of(const CommandFacts& command) {
  std::string names;
  for (const CommandFacts::Option& option : command.options)
    names += (names.empty() ? "" : " ") + option.name;
  return names;
}

// Of options that take one of some words, and of --device: "--mode", "train eval …".
std::vector<std::pair<std::string, std::string>> values_of_options(const CompletionNames& names) {
  std::vector<std::pair<std::string, std::string>> values = {
      {"--device", fmt::format("{} all", fmt::join(names.devices, " "))}};
  for (const RunOption& option : run_options())
    if (!option.rule.words.empty())
      values.emplace_back(option.flag(), fmt::format("{}", fmt::join(option.rule.words, " ")));
  return values;
}

// zsh runs this, too, after bashcompinit. Of a list the last word is completed: rtx4090,l.
std::string bash_text(const std::vector<CommandFacts>& commands, const CompletionNames& names) {
  std::string cases;
  for (const CommandFacts& command : commands)
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, options_of(command));
  std::string values;
  for (const auto& [option, words] : values_of_options(names))
    values += fmt::format("    {}) values=\"{}\" ;;\n", option, words);
  return fmt::format(R"(_metaprof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" values="" before=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  if [ -n "$values" ]; then
    case "$word" in *,*) before="${{word%,*}}," ;; esac
    COMPREPLY=($(compgen -P "$before" -W "$values" -- "${{word##*,}}"))
    [ "${{#COMPREPLY[@]}}" -gt 0 ] && return
  fi
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -W "{}" -- "$word")) ;;
  esac
}}
complete -o filenames -F _metaprof metaprof
)",
                     names_of(commands), cases, values, fmt::join(names.models, " "));
}

std::string quoted_for_fish(std::string text) {
  std::erase(text, '\\');
  std::ranges::replace(text, '\'', '"');
  return text;
}

std::string fish_text(const std::vector<CommandFacts>& commands, const CompletionNames& names) {
  std::string text = fmt::format("complete -c metaprof -n 'not __fish_use_subcommand' -a '{}'\n",
                                 fmt::join(names.models, " "));
  for (const auto& [option, words] : values_of_options(names))
    text += fmt::format("complete -c metaprof -n 'not __fish_use_subcommand' -l {} -r -a '{}'\n",
                        option.substr(2), words);
  for (const CommandFacts& command : commands) {
    text += fmt::format("complete -c metaprof -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        quoted_for_fish(first_line(command.description)));
    for (const CommandFacts::Option& option : command.options)
      text += fmt::format("complete -c metaprof -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                          command.name, option.name.substr(2), option.value.empty() ? "" : " -r",
                          quoted_for_fish(first_line(option.help)));
  }
  return text;
}

// Backslashes and leading points mean something to roff. A list of words may be broken behind a comma.
std::string roff(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\')
      escaped += "\\e";
    else if (text[i] == ',' && i + 1 < text.size() && text[i + 1] > ' ')
      escaped += ",\\:";
    else if (text[i] == '-')
      escaped += "\\-";
    else if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
      escaped += "\\&" + text.substr(i, 1);
    else
      escaped += text[i];
  }
  return escaped;
}

}  // namespace

std::string completion_text(const std::vector<CommandFacts>& commands, const CompletionNames& names,
                            const std::string& shell) {
  if (shell == "bash") return bash_text(commands, names);
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + bash_text(commands, names);
  if (shell == "fish") return fish_text(commands, names);
  fail("completion: unknown shell '{}'; expected bash, zsh or fish", shell);
}

std::string manual_page(const std::vector<CommandFacts>& commands, const std::string& version,
                        const std::string& date) {
  std::string text = fmt::format(
      ".TH METAPROF 1 \"{}\" \"{}\"\n.ad l\n.SH NAME\nmetaprof \\- what training steps of PyTorch models "
      "cost\n"
      ".SH SYNOPSIS\n.B metaprof\n.I COMMAND\n[options]\n.SH COMMANDS\n",
      roff(date), roff(version));
  for (const CommandFacts& command : commands) {
    text += fmt::format(".SS {}\n.nf\n{}\n.fi\n", command.name, roff(command.description));
    for (const CommandFacts::Option& option : command.options)
      text +=
          fmt::format(".TP\n.BR {} \" {}\"\n{}\n", roff(option.name), roff(option.value), roff(option.help));
  }
  return text +
         ".SH ENVIRONMENT\n"
         ".TP\n.B METAPROF_MODELS\nfolders of exports, separated by colons\n"
         ".TP\n.B METAPROF_PYTHON\nthe Python that has the modules of timm:NAME, model.py:make …\n"
         ".TP\n.B METAPROF_CUDNN\nthe cuDNN to ask for plans\n"
         ".TP\n.B METAPROF_DEVICE, METAPROF_PRECISION …\ndefaults of options: their names in capitals\n"
         ".TP\n.B METAPROF_CONFIG\na file of defaults\n"
         ".SH FILES\n"
         ".TP\n.B metaprof.toml, ~/.config/metaprof/config.toml\n"
         "defaults of options that neither the command line nor the environment has: device = \"rtx4090\"; "
         "a section [fit] is for one command\n"
         ".SH EXIT STATUS\n0 success, 1 a finding, 2 bad usage or input\n";
}

}  // namespace metaprof
