#include "reports/exports/open_metrics.h"

#include <fmt/format.h>

#include "core/shown_text.h"

namespace metaprof {
namespace {

// A label's value.
std::string label(std::string_view text) {
  std::string value;
  for (const char c : shown(text)) {
    if (c == '\\' || c == '"') value += '\\';
    value += c;
  }
  return value;
}

class Metrics {
 public:
  explicit Metrics(const ProfileReport& report)
      : labels_(fmt::format("model=\"{}\",device=\"{}\"", label(report.model), label(report.device))) {}

  // `more`: further labels, each with its comma.
  void gauge(std::string_view name, std::string_view help) {
    text_ += fmt::format("# TYPE metaprof_{} gauge\n# HELP metaprof_{} {}\n", name, name, help);
  }
  template <class Number>
  void value(std::string_view name, Number number, std::string_view more = "") {
    text_ += fmt::format("metaprof_{}{{{}{}}} {}\n", name, labels_, more, number);
  }
  template <class Number>
  void one(std::string_view name, std::string_view help, Number number) {
    gauge(name, help);
    value(name, number);
  }
  std::string finish() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::string labels_, text_;
};

template <class Quantity, class Count>
void by_phase(Metrics& metrics, std::string_view name, std::string_view help, const Quantity& quantity,
              Count count) {
  metrics.gauge(name, help);
  metrics.value(name, count(quantity.forward), ",phase=\"forward\"");
  metrics.value(name, count(quantity.backward), ",phase=\"backward\"");
  metrics.value(name, count(quantity.recompute), ",phase=\"recompute\"");
  metrics.value(name, count(quantity.optimizer), ",phase=\"optimizer\"");
}

}  // namespace

std::string open_metrics(const ProfileReport& report) {
  const Verdict verdict = verdict_of(report);
  Metrics metrics(report);
  metrics.one("fits", "1: the step fits the device, 0: it does not", verdict.fits ? 1 : 0);
  metrics.one("peak_reserved_bytes", "what the allocator reserves at most", verdict.reserved.count);
  metrics.one("peak_allocated_bytes", "what tensors and workspaces take at most",
              report.memory.phases.peak.allocated_bytes.peak);
  metrics.one("outside_allocator_bytes", "context, loaded kernels, handles", verdict.outside.count);
  metrics.one("left_bytes", "what stays free of the device; negative: what is missing", verdict.left().count);
  metrics.one("parameters", "numbers in all parameters", report.memory.parameters.all.count);
  metrics.one("saved_bytes", "kept for backward when the first forward ends",
              report.memory.saved.bytes.count);
  by_phase(metrics, "flops", "of all operators of the first step, 2 per multiply-add",
           report.counts.total.all, [](Flops flops) { return flops.count; });
  by_phase(metrics, "roofline_seconds", "what the first step takes at least", report.counts.roofline,
           [](double seconds) { return seconds; });
  return std::move(metrics).finish();
}

}  // namespace metaprof
