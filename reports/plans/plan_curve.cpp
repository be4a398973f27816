#include "reports/plans/plan_curve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/page/page_files.h"
#include "reports/pictures/canvas.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Anchor = Canvas::Anchor;

constexpr int kCurveWidth = 720, kCurveHeight = 420;
constexpr double kCurveLeft = 64, kCurveRight = 24, kCurveTop = 52, kCurveBottom = 48;

double percent_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

double flops_share(const CheckpointReport& report, const CheckpointRow& row) {
  return percent_of(static_cast<double>(row.recompute_flops.count), static_cast<double>(report.flops.count));
}

double time_share(const CheckpointReport& report, const CheckpointRow& row) {
  return percent_of(row.recompute_seconds, report.seconds);
}

class CurvePicture {
 public:
  explicit CurvePicture(const CheckpointReport& report) : report_(report) {
    const auto& [least, most] = std::ranges::minmax(report.curve, {}, &CheckpointRow::allocated);
    least_ = least.allocated.count;
    most_ = std::max(most.allocated.count, least_ + 1);
    for (const CheckpointRow& row : report.curve) highest_ = std::max(highest_, flops_share(report, row));
  }

  std::string drawn() && {
    canvas_.text({kCurveLeft, 20}, report_.model + " on " + report_.device, {.size = 14, .bold = true});
    canvas_.text({kCurveLeft, 38}, "FLOPs recomputed, by the peak of allocated memory", {.size = 11});
    draw_axes();
    draw_steps();
    return canvas_.svg();
  }

 private:
  double x_of(int64_t bytes) const {
    const double width = kCurveWidth - kCurveLeft - kCurveRight;
    return kCurveLeft + width * static_cast<double>(bytes - least_) / static_cast<double>(most_ - least_);
  }
  double y_of(double percent) const {
    const double height = kCurveHeight - kCurveTop - kCurveBottom;
    return kCurveTop + height * (1 - percent / highest_);
  }

  void draw_axes() {
    constexpr int kParts = 4;
    for (int part = 0; part <= kParts; ++part) {
      const double percent = highest_ * part / kParts;
      const int64_t bytes = least_ + (most_ - least_) / kParts * part;
      canvas_.line({kCurveLeft, y_of(percent)}, {kCurveWidth - kCurveRight, y_of(percent)}, "#d7dde4");
      canvas_.text({kCurveLeft - 6, y_of(percent) + 4}, fmt::format("{:.1f} %", percent),
                   {.anchor = Anchor::end});
      canvas_.text({x_of(bytes), kCurveHeight - kCurveBottom + 20}, human_bytes(bytes),
                   {.anchor = part == kParts ? Anchor::end : Anchor::middle});
    }
  }

  // From each point to the right, as far as no dearer plan is needed.
  void draw_steps() {
    for (size_t i = 0; i < report_.curve.size(); ++i) {
      const double x = x_of(report_.curve[i].allocated.count),
                   y = y_of(flops_share(report_, report_.curve[i]));
      if (i > 0) {
        const double before_x = x_of(report_.curve[i - 1].allocated.count);
        const double before_y = y_of(flops_share(report_, report_.curve[i - 1]));
        canvas_.line({x, y}, {before_x, y}, "#4c78a8", 1.5);
        canvas_.line({before_x, y}, {before_x, before_y}, "#4c78a8", 1.5);
      }
      canvas_.circle({x, y}, 3, "#1c2733");
    }
  }

  const CheckpointReport& report_;
  Canvas canvas_{kCurveWidth, kCurveHeight};
  int64_t least_ = 0, most_ = 1;
  double highest_ = 1;
};

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : shown(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string plan_curve_text(const CheckpointReport& report) {
  TextTable table;
  for (const char* title : {"allocated", "reserved", "recomputed FLOPs", "time"}) table.column(title);
  table.column("strategy", TextTable::Align::left);
  for (const CheckpointRow& row : report.curve)
    table.row({human_bytes(row.allocated.count), human_bytes(row.reserved.count),
               fmt::format("{:.1f} %", flops_share(report, row)),
               fmt::format("{:.1f} %", time_share(report, row)), row.strategy});
  const CheckpointRow& least = report.curve.back();
  return fmt::format("CURVE {}: from {} to {}, for which {:.1f} % of the step's FLOPs are recomputed\n\n{}",
                     shown(report.model, kMostCharactersOfName), human_bytes(report.plain.allocated.count),
                     human_bytes(least.allocated.count), flops_share(report, least), table.text());
}

std::string plan_curve_svg(const CheckpointReport& report) { return CurvePicture(report).drawn(); }

std::string plan_curve_html(const CheckpointReport& report) {
  const std::string title = html_text(report.model + " on " + report.device);
  std::string rows;
  for (const CheckpointRow& row : report.curve)
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} "
        "%</td><td>{}</td><td><code>{}</code></td></tr>\n",
        human_bytes(row.allocated.count), human_bytes(row.reserved.count), flops_share(report, row),
        time_share(report, row), html_text(row.strategy),
        html_text(fmt::format("{}", fmt::join(row.patterns, " "))));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><main><h1>{0}</h1>\n{2}\n<table><thead><tr><th>allocated</th><th>reserved</th><th>recomputed "
      "FLOPs</th><th>time</th><th>strategy</th><th>--checkpoint</th></tr></thead><tbody>\n{3}</tbody></table>"
      "</main></body></html>\n",
      title, page_css, plan_curve_svg(report), rows);
}

}  // namespace metaprof
