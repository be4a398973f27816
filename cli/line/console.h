#pragma once
// How commands speak: data to stdout or a file, messages to stderr.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

/// One line "metaprof: …" on stderr, made plain (shown_message).
void message(std::string_view text);
/// On stderr: what a reader should know besides the results. Empty ones are left out.
void print_note(const std::string& note);
void print_notes(const std::vector<std::string>& notes);
void print_warnings(const std::vector<std::string>& warnings);  ///< each with "warning: " before it

/// Whether stdout gets colours. `when`: always, never, or auto: it is a terminal, and NO_COLOR is not set (no-color.org).
bool colour_on_stdout(std::string_view when);

/// Characters of a line that tables may take: of a terminal its own width, else 0, which means as many as they need.
size_t width_of_stdout();

/// Tells on stderr how far long work is, where that is a terminal; nothing for the first second. Its last line goes
/// with it.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view what) : what_(what), begin_(std::chrono::steady_clock::now()) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void tell(size_t done, size_t all);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begin_, told_;
  bool shown_ = false;
};

/// A report to stdout, made plain line by line; `colour`: it has colours, which stay.
void print_text(std::string_view text, bool colour = false);
/// Writes a result to a file (core/formats/output_file.h), or to stdout if it is "-". Errors: the file cannot be written.
void write_result(const std::string& file, std::string_view text);

}  // namespace metaprof
