#include "reports/pictures/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/pictures/canvas.h"
#include "reports/sections/verdict.h"

namespace metaprof {
namespace {

constexpr int kWidth = 960, kHeight = 420, kLeft = 70, kRight = 20, kTop = 56, kBottom = 66;
constexpr int kColumns = kWidth - kLeft - kRight, kRows = kHeight - kTop - kBottom;
constexpr const char* kColours[] = {"#4c78a8", "#9ecae9", "#72b7b2", "#f58518", "#e45756",
                                    "#b279a2", "#bab0ac", "#54a24b", "#eeca3b", "#ff9da6"};

int64_t total(const BytesByCategory& bytes) {
  int64_t sum = 0;
  for (const Bytes category : bytes) sum += category.count;
  return sum;
}

using Anchor = Canvas::Anchor;

class Picture {
 public:
  Picture(const ProfileReport& report, const Schedule& schedule) : report_(report), schedule_(schedule) {
    const Verdict verdict = verdict_of(report);
    const int64_t limit = (verdict.memory - verdict.outside - verdict.kept_free()).count;
    choose_step();
    choose_columns();
    if (limit / 5 < most_ / 2) limit_ = limit;
    most_ = std::max({most_, limit_, int64_t{1}});
  }

  Canvas drawn() && {
    canvas_.text({kLeft, 20}, report_.model + " on " + report_.device_title, {.size = 14, .bold = true});
    canvas_.text({kLeft, 40}, verdict_line(verdict_of(report_)), {.size = 11});
    draw_axis();
    draw_areas();
    draw_phases();
    draw_limit();
    draw_peak();
    draw_legend();
    return std::move(canvas_);
  }

 private:
  // Events of the step with the peak, until memory runs out.
  void choose_step() {
    const PeakMoment& peak = report_.memory.peak;
    const auto& failed = report_.memory.phases.out_of_memory;
    const size_t end = failed ? failed->event : SIZE_MAX;
    for (const PhaseSpan& span : schedule_.phases) {
      if (span.part.step != peak.part.step || span.begin >= end) continue;
      phases_.push_back(span);
      phases_.back().end = static_cast<uint32_t>(std::min<size_t>(span.end, end));
    }
    if (phases_.empty()) return;
    begin_ = time_of(phases_.front().begin);
    end_ = std::max(begin_ + 1, time_of(phases_.back().end));
  }

  size_t moment_at(uint32_t event) const {
    const auto found = std::ranges::upper_bound(schedule_.moments, event, {}, &Moment::event);
    return static_cast<size_t>(found - schedule_.moments.begin());
  }
  int64_t time_of(uint32_t event) const {
    const size_t at = moment_at(event);
    return at == 0 ? 0 : schedule_.moments[at - 1].at;
  }
  double x_of(int64_t time) const {
    return kLeft + kColumns * static_cast<double>(time - begin_) / static_cast<double>(end_ - begin_);
  }
  double y_of(int64_t bytes) const {
    return kTop + kRows * (1 - static_cast<double>(bytes) / (1.08 * static_cast<double>(most_)));
  }

  // For each column the fullest moment in it; where nothing changes, that before.
  void choose_columns() {
    columns_.assign(kColumns, BytesByCategory{});
    if (phases_.empty()) return;
    std::vector<bool> taken(kColumns);
    const size_t first = moment_at(phases_.front().begin), last = moment_at(phases_.back().end);
    BytesByCategory before = first == 0 ? BytesByCategory{} : schedule_.moments[first - 1].by_category;
    const BytesByCategory start = before;
    for (size_t i = first; i < last; ++i) {
      const Moment& moment = schedule_.moments[i];
      const auto x = std::clamp(static_cast<int>(x_of(moment.at)) - kLeft, 0, kColumns - 1);
      BytesByCategory& column = columns_[static_cast<size_t>(x)];
      if (!taken[static_cast<size_t>(x)] || total(moment.by_category) > total(column))
        column = moment.by_category;
      taken[static_cast<size_t>(x)] = true;
    }
    before = start;
    for (size_t x = 0; x < columns_.size(); ++x) {
      if (!taken[x]) columns_[x] = before;
      before = columns_[x];
      most_ = std::max(most_, total(columns_[x]));
    }
  }

  void draw_axis() {
    int64_t step = 1;
    while (most_ / step > 6) step *= 2;
    for (int64_t bytes = 0; y_of(bytes) >= kTop; bytes += step) {
      canvas_.line({kLeft, y_of(bytes)}, {kWidth - kRight, y_of(bytes)}, "#d7dde4");
      canvas_.text({kLeft - 6, y_of(bytes) + 4}, human_bytes(bytes), {.anchor = Anchor::end});
    }
  }

  void draw_areas() {
    std::vector<int64_t> below(kColumns);
    for (size_t c = 0; c < kCategories; ++c) {
      std::vector<Point> top, bottom;
      bool any = false;
      for (size_t x = 0; x < columns_.size(); ++x) {
        const int64_t high = below[x] + columns_[x][c].count;
        any = any || high > below[x];
        const double at = kLeft + static_cast<double>(x);
        top.emplace_back(at, y_of(high));
        bottom.emplace_back(at, y_of(below[x]));
        below[x] = high;
      }
      if (!any) continue;
      used_.push_back(c);
      top.insert(top.end(), bottom.rbegin(), bottom.rend());
      canvas_.polygon(std::move(top), kColours[c % std::size(kColours)]);
    }
  }

  void draw_phases() {
    for (const PhaseSpan& span : phases_) {
      const double from = x_of(time_of(span.begin)), to = x_of(time_of(span.end));
      canvas_.line({from, kTop}, {from, kHeight - kBottom + 6}, "#aeb5bd");
      const std::string name(to_string(span.part.phase));
      if (to - from > 7.0 * static_cast<double>(name.size()))
        canvas_.text({(from + to) / 2, kHeight - kBottom + 18}, name, {.anchor = Anchor::middle});
    }
    canvas_.text({kWidth - kRight, kHeight - kBottom + 34},
                 fmt::format("step {}, {:.1f} ms of an ideal device", report_.memory.peak.part.step + 1,
                             static_cast<double>(end_ - begin_) / 1e6),
                 {.size = 10, .anchor = Anchor::end});
  }

  void draw_limit() {
    if (limit_ == 0) return;
    canvas_.line({kLeft, y_of(limit_)}, {kWidth - kRight, y_of(limit_)}, "#cf222e", 1.5);
    canvas_.text({kLeft + 4, y_of(limit_) - 4}, "the allocator can have " + human_bytes(limit_),
                 {.size = 11});
  }

  void draw_peak() {
    const PeakMoment& peak = report_.memory.peak;
    if (phases_.empty()) return;
    const double x = x_of(time_of(peak.event)), y = y_of(peak.bytes.count);
    const bool right = x > kWidth / 2.0;
    canvas_.circle({x, y}, 4, "#1c2733");
    canvas_.text({x + (right ? -9 : 9), y + 4},
                 (report_.memory.phases.out_of_memory ? "out of memory after " : "peak ") +
                     human_bytes(peak.bytes.count),
                 {.bold = true, .anchor = right ? Anchor::end : Anchor::start});
  }

  void draw_legend() {
    double x = kLeft;
    constexpr double kTopOfLegend = kHeight - 22, kSide = 11;
    for (const size_t c : used_) {
      const std::string name(to_string(static_cast<Category>(c)));
      canvas_.polygon({{x, kTopOfLegend},
                       {x + kSide, kTopOfLegend},
                       {x + kSide, kTopOfLegend + kSide},
                       {x, kTopOfLegend + kSide}},
                      kColours[c % std::size(kColours)]);
      canvas_.text({x + 16, kHeight - 12}, name, {.size = 11});
      x += 30 + 6.5 * static_cast<double>(name.size());
    }
  }

  const ProfileReport& report_;
  const Schedule& schedule_;
  std::vector<PhaseSpan> phases_;
  std::vector<BytesByCategory> columns_;
  std::vector<size_t> used_;
  int64_t begin_ = 0, end_ = 1, most_ = 0, limit_ = 0;
  Canvas canvas_{kWidth, kHeight};
};

}  // namespace

std::string timeline_svg(const ProfileReport& report, const Schedule& schedule) {
  return Picture(report, schedule).drawn().svg();
}

std::string timeline_png(const ProfileReport& report, const Schedule& schedule) {
  return Picture(report, schedule).drawn().png();
}

}  // namespace metaprof
