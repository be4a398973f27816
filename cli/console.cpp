#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include "core/error.h"

namespace metaprof {

void message(std::string_view text) { std::cerr << "metaprof: " << text << '\n'; }

void print_note(const std::string& note) {
  if (!note.empty()) message((note.starts_with("warning: ") ? "" : "note: ") + note);
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_note(note);
}

bool colour_on_stdout() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

size_t width_of_stdout() {
  winsize size{};
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_terminal ? size.ws_col : 0;
}

void write_result(const std::string& file, std::string_view text) {
  if (file == "-") {
    std::cout << text;
    return;
  }
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail("{}: cannot be written ({})", file, std::strerror(errno));
}

}  // namespace metaprof
