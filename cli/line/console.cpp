#include "cli/line/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "core/formats/output_file.h"
#include "core/shown_text.h"

namespace metaprof {

void message(std::string_view text) { std::cerr << "metaprof: " << shown_message(text) << '\n'; }

void print_note(const std::string& note) {
  if (!note.empty()) message((note.starts_with("warning: ") ? "" : "note: ") + note);
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_note(note);
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_note("warning: " + warning);
}

bool colour_on_stdout(std::string_view when) {
  if (when != "auto") return when == "always";
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  if (is_set("NO_COLOR")) return false;
  return is_set("FORCE_COLOR") || isatty(STDOUT_FILENO) != 0;
}

size_t width_of_stdout() {
  winsize size{};
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_terminal ? size.ws_col : 0;
}

void ProgressLine::tell(size_t done, size_t all) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - begin_ < 1s || now - told_ < 100ms) return;
  told_ = now;
  shown_ = true;
  std::cerr << "\r" << what_ << ' ' << done << " of " << all << std::flush;
}

ProgressLine::~ProgressLine() {
  if (shown_) std::cerr << "\r\x1b[K" << std::flush;
}

void print_text(std::string_view text, bool colour) {
  if (colour) {
    std::cout << shown_lines(text);
    return;
  }
  for (size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    std::cout << shown(text.substr(0, end)) << '\n';
  std::cout << shown(text);
}

void write_result(const std::string& file, std::string_view text) {
  if (file == "-")
    std::cout << text;
  else
    write_file(file, text);
}

}  // namespace metaprof
