// metaprof diff: two reports of `metaprof profile --json` compared.

#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "reports/checks/diff_report.h"
#include "validation/profiles/profile_diff.h"

namespace metaprof {
namespace {

constexpr const char* kDiffDescription =
    "Two profiles compared: options and figures that differ.\n"
    "\n"
    "  metaprof profile model.pt2 --json before.json; … ; metaprof profile model.pt2 --json after.json\n"
    "  metaprof diff before.json after.json\n"
    "  metaprof diff before.json after.json --top 10  the totals and the ten largest of the rest\n"
    "  metaprof diff before.json after.json --top -1  every figure\n"
    "  metaprof diff before.json after.json --markdown  for a comment on a pull request\n"
    "\n"
    "Exit status: 0 no figure differs, 1 some figures differ, 2 bad usage or input.\n";

struct DiffOptions {
  std::string before, after, json;
  bool markdown = false;
  int top = 0;
  int64_t width = 0;
};

int diff(const DiffOptions& options) {
  const ProfileDiff result = diff_profiles(ProfileFile(options.before), ProfileFile(options.after));
  if (!options.json.empty()) write_result(options.json, diff_json(result));
  if (options.json != "-")
    print_text(options.markdown ? diff_markdown(result)
                                : diff_text(result, options.top, static_cast<size_t>(options.width)));
  return result.rows.empty() ? kFine : kFinding;
}

}  // namespace

void add_diff_command(CommandLine& line) {
  Command command = line.add("diff", kDiffDescription);
  auto options = std::make_shared<DiffOptions>();
  command.option("BEFORE", options->before, "a report").value(" ").required();
  command.option("AFTER", options->after, "another report").value(" ").required();
  command
      .option("--top", options->top,
              "figures to show besides causes: the totals and the N largest changes; 0: none; -1: all")
      .value("N")
      .with_default();
  command.flag("--markdown", options->markdown,
               "print Markdown instead of the text: peaks, kinds of memory, and modules whose saved bytes "
               "changed most");
  command.option("--json", options->json, "write JSON to FILE; -: to stdout, instead of the text")
      .value("FILE");
  add_width(command, options->width);
  command.on_run([options] { return diff(*options); });
}

}  // namespace metaprof
