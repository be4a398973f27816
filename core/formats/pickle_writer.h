#pragma once
// Python's pickle format, protocol 2, as far as reports need it: dictionaries, lists, tuples, text and
// integers. A text that comes again is taken from the memo, as Python's own pickler does.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace metaprof {

/// Calls must nest as the values do: begin_dict, then a text and a value for each entry, end_dict.
class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02") {}

  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void begin_tuple() { out_ += '('; }
  void end_tuple() { out_ += 't'; }
  void text(std::string_view text);
  void integer(int64_t number);
  void boolean(bool value) { out_ += value ? "\x88" : "\x89"; }

  /// The pickle.
  std::string finish() && { return std::move(out_) + '.'; }

 private:
  void memo(uint32_t number, bool get);
  std::string out_;
  std::unordered_map<std::string, uint32_t> memo_;
};

}  // namespace metaprof
