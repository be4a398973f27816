// Findings as JUnit's XML, as CI systems read it.

#include <fmt/format.h>

#include "core/formats/display.h"
#include "reports/checks/check_findings.h"
#include "reports/checks/check_report.h"

namespace metaprof {
namespace {

// Text of an element or attribute.
std::string escaped(std::string_view text) {
  std::string xml;
  for (const char c : shown(text)) switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      case '"': xml += "&quot;"; break;
      default: xml += c;
    }
  return xml;
}

// A test case can fail once: all messages are in its failure.
std::string test_case(std::string_view suite, std::string_view name, std::string_view file,
                      const std::vector<CheckFinding>& findings) {
  std::string xml = fmt::format(R"(  <testcase classname="metaprof.check.{}" name="{}" file="{}")", suite,
                                escaped(name), escaped(file));
  if (findings.empty()) return xml + "/>\n";
  xml += fmt::format(">\n   <failure type=\"{}\" message=\"{}\">", check_rules()[findings[0].rule].id,
                     escaped(findings[0].message));
  for (const CheckFinding& finding : findings) {
    xml += escaped(finding.message) + "\n";
    if (!finding.why.empty()) xml += escaped(finding.why) + "\n";
  }
  return xml + "</failure>\n  </testcase>\n";
}

struct Suite {
  std::string_view name;
  std::string cases = {};
  size_t tests = 0, failures = 0;

  void add(std::string_view id, std::string_view file, const std::vector<CheckFinding>& findings) {
    cases += test_case(name, id, file, findings);
    ++tests;
    failures += !findings.empty();
  }
  std::string xml() const {
    if (tests == 0) return "";
    return fmt::format(
        " <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{} </testsuite>\n", name, tests,
        failures, cases);
  }
};

}  // namespace

std::string check_junit(const CheckReport& report) {
  Suite measurements{"measurement"}, baselines{"baseline"};
  for (const CheckResult& result : report.measurements)
    measurements.add(result.id, result.recording, findings_of(result, report.tolerance));
  for (const BaselineResult& result : report.baselines)
    baselines.add(result.file, result.file, findings_of(result, report.tolerance));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"metaprof check\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}{}</testsuites>\n",
      measurements.tests + baselines.tests, measurements.failures + baselines.failures, measurements.xml(),
      baselines.xml());
}

}  // namespace metaprof
