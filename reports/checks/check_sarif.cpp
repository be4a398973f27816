// Findings as SARIF 2.1.0 (OASIS), as code hosts show them beside a change.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/checks/check_findings.h"
#include "reports/checks/check_report.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// RFC 3986: a relative path is a relative reference, one from the root a file URI.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json location(const std::string& file, int64_t line) {
  return {
      {"physicalLocation",
       {{"artifactLocation", {{"uri", uri_of(file)}}}, {"region", {{"startLine", line > 0 ? line : 1}}}}}};
}

Json result_json(const CheckFinding& finding) {
  Json json = {
      {"ruleId", check_rules()[finding.rule].id},
      {"ruleIndex", finding.rule},
      {"level", "error"},
      {"message", {{"text", finding.why.empty() ? finding.message : finding.message + ". " + finding.why}}}};
  if (!finding.source.empty()) {
    json["locations"] = Json::array({location(finding.source, finding.source_line)});
    json["relatedLocations"] = Json::array({location(finding.file, 1)});
  } else if (finding.log.empty()) {
    json["locations"] = Json::array({location(finding.file, 1)});
  } else {
    json["locations"] = Json::array({location(finding.log, finding.line)});
    json["relatedLocations"] = Json::array({location(finding.file, 1)});
  }
  return json;
}

Json rules_json() {
  Json rules = Json::array();
  for (const CheckRule& rule : check_rules())
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.description}}},
                     {"defaultConfiguration", {{"level", "error"}}}});
  return rules;
}

}  // namespace

std::string check_sarif(const CheckReport& report, std::string_view version) {
  Json results = Json::array();
  const auto add = [&](const auto& checked) {
    for (const CheckFinding& finding : findings_of(checked, report.tolerance))
      results.push_back(result_json(finding));
  };
  for (const CheckResult& result : report.measurements) add(result);
  for (const BaselineResult& result : report.baselines) add(result);
  const Json tool = {{"driver", {{"name", "metaprof"}, {"version", version}, {"rules", rules_json()}}}};
  const Json json = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                     {"version", "2.1.0"},
                     {"runs", Json::array({{{"tool", tool}, {"results", results}}})}};
  return json_text(json);
}

}  // namespace metaprof
