#pragma once
// What `metaprof profile` found, and its forms. Reports are pure functions of this. docs/reference/profile_report.md
// explains the figures to users.

#include <string>
#include <vector>

#include "estimate/results/profile.h"
#include "reports/sections/verdict.h"

namespace metaprof {

/// The verdict in a line, with the cheapest fix where there is one.
std::string verdict_line(const ProfileReport& report);

/// That parameters are not fp32, where the option says so; empty: they are.
std::string precision_note(const ProfileReport& report);

/// How many tensors' lifetimes were guessed, and what tells them; empty: none.
std::string guessed_note(const ProfileReport& report);

/// How well the part outside the allocator is known; empty: it was given, or there is none.
std::string outside_note(const ProfileReport& report);

/// What of the text to show. The table is that of nodes where the report has them, else that of modules.
struct TextOptions {
  int depth = 3;     ///< of the tree of modules; negative: all of it
  std::string sort;  ///< column by which rows are sorted, the largest first; modules: among their siblings;
                     ///< empty: as called
  std::vector<std::string> columns;  ///< in this order; empty: all
  bool colour = false;
  size_t width = 0;  ///< of tables, as in TextTable::text
  bool brief = false,
       brief_modules = false;  ///< of `run`: what fits a screen; the same of the table of modules
  int top = 0;                 ///< only so many rows, the largest by `sort` of all levels; 0: all
};

/// Names of the columns, for `sort` and `columns`.
std::vector<std::string> module_column_names();

std::vector<std::string> node_column_names();

/// Errors: an unknown column.
std::string profile_text(const ProfileReport& report, const TextOptions& options);

/// Headings, the table, totals and the peak as Markdown. Errors: an unknown column.
std::string profile_markdown(const ProfileReport& report, const TextOptions& options);

/// The whole table (no depth) as CSV: bytes, FLOPs and seconds without units. Errors: an unknown column.
std::string profile_csv(const ProfileReport& report, const TextOptions& options);

/// As docs/reference/profile_report.md and reports/schema/profile.schema.json describe it; ends with a newline.
std::string profile_json(const ProfileReport& report);
/// Of that what `metaprof check --baseline` compares, a line for each figure: a file to keep beside the source. Its schema is
/// "metaprof.baseline".
std::string baseline_json(const ProfileReport& report);

}  // namespace metaprof
