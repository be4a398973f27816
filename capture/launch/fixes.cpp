#include "capture/launch/fixes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <tuple>
#include <utility>

#include "capture/launch/peak.h"

namespace metaprof {
namespace {

constexpr std::string_view kExpandable = "expandable_segments", kBatch = "batch";
constexpr Bytes kRoom{int64_t{1} << 40};  // of a device on which no program runs out of memory
constexpr double kHelps = 0.99;  // of what it takes without: a change with more is not tried with others

constexpr std::array kEndings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};  // by which somebody ends a run

// A change, as the recorder is told it, and as a user writes it.
struct Change {
  std::string name, text;
};

Change together(const std::vector<Change>& changes) {
  std::vector<std::string> names, texts;
  for (const Change& change : changes) {
    names.push_back(change.name);
    texts.push_back(change.text);
  }
  return {fmt::format("{}", fmt::join(names, "\n")), fmt::format("{}", fmt::join(texts, "; "))};
}

bool has_expandable_segments(const RunReport& report) {
  return std::ranges::any_of(report.ranks, [](const RankRun& rank) {
    return rank.alloc_conf.find("expandable_segments:True") != std::string::npos;
  });
}

class Trials {
 public:
  Trials(const LaunchOptions& options, const RunReport& before, std::function<bool(const RunReport&)> fits,
         std::function<void(const std::string&)> tell)
      : options_(options), fits_(std::move(fits)), tell_(std::move(tell)), memory_(options.device.memory) {
    take(before);
    const bool ran_out = std::ranges::any_of(
        before.ranks, [](const RankRun& rank) { return !rank.recorded.out_of_memory.empty(); });
    if (ran_out && !options.real) look_with_room();
  }

  TriedFixes run() {
    for (const PossibleFix& fix : possible_) {
      if (fix.largest > 0) continue;
      singles_.push_back({fix.name, text_of(fix)});
      try_change(singles_.back());
    }
    if (const PossibleFix* batch = batch_fix()) try_smaller(*batch, {}, found_.none);
    if (!any_fits() && !found_.none.fits) try_together();
    sort_fixes(found_.rows);
    return std::move(found_);
  }

 private:
  // What the program does without a change.
  void take(const RunReport& report) {
    found_.none = figures_of(report);
    found_.none.fits = fits_(report);
    ended_ = report.ended;
    possible_ = report.possible_fixes;
    if (!has_expandable_segments(report))
      possible_.push_back(
          {std::string(kExpandable), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", {}, 0});
  }

  void look_with_room() {
    if (tell_) tell_("room for all that it asks for");
    LaunchOptions options = with_room(options_);
    options.costs = true;
    RunReport report = run_recorded(silent(options), {});
    notice_end(report);
    if (!report.problem.empty() || !report.ended.empty()) return;  // it does not get further
    take(report);
    found_.none.fits = false;
    found_.has_room = true;
    found_.captured = std::move(report.captured);
    if (!report.ranks.empty() && !report.ranks[0].models.empty())
      if (const auto& inputs = report.ranks[0].models[0].inputs; !inputs.empty() && !inputs[0].first.empty())
        found_.batch = inputs[0].first[0];
  }

  void notice_end(const RunReport& report) {
    stopped_ |= std::ranges::count(kEndings, report.end.signal) > 0;
  }

  static LaunchOptions with_room(LaunchOptions options) {
    options.device.memory = kRoom;
    return options;
  }

  static LaunchOptions silent(LaunchOptions options) {
    options.silent = true;
    options.save.clear();
    options.events = false;
    return options;
  }

  static TriedFix figures_of(const RunReport& report) {
    const RunPeaks peaks = peaks_of(report);
    TriedFix fix;
    fix.allocated = peaks.allocated;
    fix.reserved = peaks.reserved;
    fix.ran_out = peaks.ran_out;
    return fix;
  }

  TriedFix run_with(LaunchOptions options, const Change& change) {
    std::string recorded;
    for (size_t begin = 0; begin < change.name.size();) {
      const size_t end = std::min(change.name.find('\n', begin), change.name.size());
      const std::string name = change.name.substr(begin, end - begin);
      if (name == kExpandable)
        options.alloc_conf +=
            (options.alloc_conf.empty() ? "" : ",") + std::string("expandable_segments:True");
      else
        recorded += name + "\n";
      begin = end + 1;
    }
    options.fix = recorded;
    const RunReport report = run_recorded(silent(options), {});
    notice_end(report);
    TriedFix fix = figures_of(report);
    fix.name = change.name;
    std::ranges::replace(fix.name, '\n', '+');
    fix.change = change.text;
    if (!report.problem.empty() || (report.ended != ended_ && !report.ended.empty()))
      fix.ended = report.problem.empty() ? report.ended : report.problem;
    else
      fix.fits = fits_(report);
    return fix;
  }

  // What it takes with the change. On a device with room it fits if this device has as much; where only less is allocated, its
  // allocator frees what it has cached, and the device itself says whether that is enough.
  TriedFix tried(const Change& change) {
    if (tell_) tell_(change.text);
    if (!found_.has_room) return run_with(options_, change);
    TriedFix fix = run_with(with_room(options_), change);
    const Bytes available = memory_ - options_.context;
    if (!fix.ended.empty()) return fix;
    fix.fits = fix.reserved <= available;
    if (fix.fits || fix.allocated > available) return fix;
    TriedFix here = run_with(options_, change);
    return here.fits ? here : fix;
  }

  bool try_change(const Change& change) {
    if (stopped_) return false;
    found_.rows.push_back(tried(change));
    return found_.rows.back().fits;
  }

  bool any_fits() const {
    return std::ranges::any_of(found_.rows, [](const TriedFix& fix) { return fix.fits; });
  }

  const PossibleFix* batch_fix() const {
    const auto found = std::ranges::find(possible_, kBatch, &PossibleFix::name);
    return found == possible_.end() ? nullptr : &*found;
  }

  // Half of the batch, half of that, and so on until it fits; the last is a row. Two sizes say what a sample takes: sizes that cannot fit are
  // not run. `whole`: with `others` and the whole batch.
  void try_smaller(const PossibleFix& batch, const std::vector<Change>& others, const TriedFix& whole) {
    const Bytes available = memory_ - options_.context;
    TriedFix last = whole;
    int64_t size = batch.largest, each = 0;
    for (int64_t next = size / 2; next >= 1 && !stopped_; next /= 2) {
      if (next > 1 && last.allocated.count - each * (size - next) > available.count && each > 0) continue;
      std::vector<Change> all = others;
      all.insert(all.begin(), {fmt::format("{}={}", kBatch, next), text_of(batch, next)});
      TriedFix fix = tried(together(all));
      each = (last.allocated.count - fix.allocated.count) / (size - next);
      last = std::move(fix);
      size = next;
      if (last.fits || !last.ended.empty() || found_.none.fits) break;
    }
    if (size < batch.largest) found_.rows.push_back(last);
  }

  const TriedFix& row_of(const Change& change) const {
    return *std::ranges::find(found_.rows, change.text, &TriedFix::change);
  }

  // Whether the allocator reserves less with it, by more than its rounding.
  bool helps(const Change& change) const {
    const TriedFix& fix = row_of(change);
    return fix.ended.empty() &&
           static_cast<double>(fix.reserved.count) < kHelps * static_cast<double>(found_.none.reserved.count);
  }

  // Those that help, together; then with a smaller batch.
  void try_together() {
    if (stopped_) return;
    std::vector<Change> helpful;
    std::ranges::copy_if(singles_, std::back_inserter(helpful), [&](const Change& c) { return helps(c); });
    const auto fused = std::ranges::find(helpful, "fused", &Change::name);
    const auto loop = std::ranges::find(helpful, "foreach", &Change::name);
    if (fused != helpful.end() && loop != helpful.end())  // an optimizer has one of them
      helpful.erase(row_of(*fused).reserved < row_of(*loop).reserved ? loop : fused);
    if (helpful.empty() || (helpful.size() > 1 && try_change(together(helpful)))) return;
    if (const PossibleFix* batch = batch_fix(); batch && !stopped_)
      try_smaller(*batch, helpful, row_of(together(helpful)));
  }

  const LaunchOptions& options_;
  std::function<bool(const RunReport&)> fits_;
  std::function<void(const std::string&)> tell_;
  Bytes memory_;
  std::string ended_;  // what ended the program without a change
  std::vector<PossibleFix> possible_;
  std::vector<Change> singles_;  // that were tried
  TriedFixes found_;
  bool stopped_ = false;  // somebody ended a run: no other follows
};

}  // namespace

std::string text_of(const PossibleFix& fix, int64_t number) {
  const size_t place = fix.change.find("{}");
  if (place == fix.change.npos) return fix.change;
  return fix.change.substr(0, place) + (fix.largest > 0 ? fmt::format("{}", number) : short_line(fix.line)) +
         fix.change.substr(place + 2);
}

void sort_fixes(std::vector<TriedFix>& rows) {
  std::ranges::stable_sort(rows, {}, [](const TriedFix& fix) {
    return std::tuple(!fix.ended.empty(), !fix.fits, fix.by_program, fix.reserved);
  });
}

void try_fixes(const LaunchOptions& options, RunReport& report,
               const std::function<bool(const RunReport&)>& fits,
               const std::function<void(const std::string&)>& tell) {
  report.fixes = Trials(options, report, fits, tell).run();
}

}  // namespace metaprof
