#include "tests/fuzz/findings.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

namespace metaprof {
namespace {

// The innermost function of ours in a sanitizer's report that is no container's; empty: there is none.
std::string place_in(const std::string& report) {
  static const std::regex kFrame(R"(#[0-9]+ 0x[0-9a-f]+ in (metaprof::[^\n<(]*))");
  for (std::sregex_iterator frame(report.begin(), report.end(), kFrame), end; frame != end; ++frame)
    if (!(*frame)[1].str().starts_with("metaprof::SmallVector")) return (*frame)[1].str();
  return "";
}

// A kind is told by the place, and by words without addresses of memory, numbers of processes and lengths.
std::string kind_of(const Finding& finding) {
  static const std::regex kVarying("0x[0-9a-f]{9,}|==[0-9]+==|[0-9]+ characters|message: .*");
  const std::string place = place_in(finding.report);
  return std::regex_replace(finding.what, kVarying, "…") + (place.empty() ? "" : ", " + place);
}

bool fails_alike(const HostileCase& hostile, const std::string& kind) {
  bool fails = false;
  watch(0, 1,
        {.run = [&](uint64_t) { return run_case(hostile); },
         .found = [&](const Finding& finding) { fails = kind_of(finding) == kind; }});
  return fails;
}

// A case that ends whoever reads it cannot be made smaller.
bool can_be_read(const HostileCase& hostile) {
  bool read = true;
  watch(0, 1,
        {.run =
             [&](uint64_t) {
               try {
                 (void)read_case(hostile);
               } catch (const std::exception&) {
                 return Outcome{true, ""};
               }
               return Outcome{};
             },
         .found = [&](const Finding&) { read = false; }});
  return read;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

Findings::Findings(std::string folder, Make make, Shrink shrink)
    : folder_(std::move(folder)), make_(std::move(make)), shrink_(std::move(shrink)) {
  std::filesystem::create_directories(folder_);
}

void Findings::add(const Finding& finding) {
  ++count_;
  if (++kinds_[kind_of(finding)] > 1) return;
  const std::string name = fmt::format("{}/{}", folder_, finding.number);
  fmt::print("case {}: {}\n", finding.number, finding.what);
  std::fflush(stdout);
  write(finding, name);
}

void Findings::write(const Finding& finding, const std::string& name) const {
  HostileCase hostile = make_(finding.number);
  const std::string kind = kind_of(finding);
  if (!finding.what.starts_with("a hang") && !finding.what.starts_with("a control character") &&
      can_be_read(hostile))
    hostile = shrink_(hostile, [&](const HostileCase& less) { return fails_alike(less, kind); });
  const std::string file = name + hostile.ending, command = hostile.command(file);
  write_file(file, hostile.bytes);
  write_file(name + ".txt", fmt::format("metaprof {}\n{}\n{}", command, finding.what, finding.report));
  fmt::print("  metaprof {}\n", command);
  std::fflush(stdout);
}

std::string Findings::text() const {
  std::string text;
  for (const auto& [kind, count] : kinds_) text += fmt::format("{:6} × {}\n", count, kind);
  return text;
}

int run_cases(uint64_t begin, uint64_t count, const std::string& folder, const Findings::Make& make,
              const Findings::Shrink& shrink) {
  Findings findings(folder, make, shrink);
  const uint64_t accepted = watch(begin, begin + count,
                                  {.run = [&](uint64_t number) { return run_case(make(number)); },
                                   .found = [&](const Finding& finding) { findings.add(finding); }});
  fmt::print("{}{} cases, {} of them not refused; {} findings\n", findings.text(), count, accepted,
             findings.count());
  return findings.count() == 0 ? 0 : 1;
}

}  // namespace metaprof
