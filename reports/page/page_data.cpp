#include "reports/page/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "core/append.h"
#include "core/formats/display.h"
#include "core/formats/json_string.h"
#include "meta/trace/module_path.h"
#include "reports/profile/answer.h"
#include "reports/profile/module_table.h"
#include "reports/profile/node_table.h"
#include "reports/sections/advice_report.h"
#include "reports/sections/peak_contributors.h"
#include "reports/sections/verdict.h"

namespace metaprof {
namespace {

std::string_view measure_name(Measure measure) {
  switch (measure) {
    case Measure::bytes: return "bytes";
    case Measure::flops: return "flops";
    case Measure::seconds: return "seconds";
    default: return "elements";
  }
}

// Temporaries, peaks and running totals of rows do not add up to one of all.
bool has_sum(std::string_view column) {
  return column.find("tmp") == column.npos && column.find("peak") == column.npos && column != "accumulated" &&
         column != "save_fwd_in";
}

// The module to which a storage belongs: that of its parameter, else the one that made it.
std::string_view home_of(const LargeStorage& storage) {
  const bool of_parameter = storage.category == Category::parameter || storage.category == Category::buffer ||
                            storage.category == Category::gradient ||
                            storage.category == Category::optimizer_state;
  return of_parameter && !storage.name.empty() ? parent_path(storage.name) : storage.module;
}

// "gate_proj.weight f32[14336,4096]"
std::string tensor_of(const LargeStorage& storage) {
  std::string text = storage.category == Category::workspace
                         ? storage.name
                         : storage.name.substr(storage.name.rfind('.') + 1);
  if (storage.shape)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", short_name(storage.dtype),
                        to_string(SizesView(*storage.shape)));
  return text;
}

class PageData {
 public:
  explicit PageData(const PageInput& input)
      : input_(input), report_(input.report), schedule_(input.schedule), names_(schedule_.names) {
    for (size_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], i);
  }

  std::string json() && {
    add(R"({{"model":{},"device":{},"framework":{},"options":{},"verdict":{},"answer":{},"fits":{},)",
        json_string(report_.model), json_string(report_.device_title), json_string(report_.framework),
        json_string(options()), json_string(verdict_line(report_)), json_string(answer(report_)),
        verdict_of(report_).fits);
    add_room();
    add_facts();
    add_phases();
    add_moments();
    add_stays();
    add_peak_contributors();
    add_advice();
    add_compared();
    add_tables();
    add_names();
    return std::move(out_) + "}";
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    append(out_, format, std::forward<Args>(args)...);
  }

  size_t name(const std::string& text) {
    const auto [found, is_new] = index_.try_emplace(text, names_.size());
    if (is_new) names_.push_back(text);
    return found->second;
  }

  // What was run: where memory ran out, until then.
  size_t events() const {
    const size_t all = schedule_.phases.empty() ? 0 : schedule_.phases.back().end;
    const auto& failed = report_.memory.phases.out_of_memory;
    return failed ? std::min<size_t>(failed->event, all) : all;
  }

  std::string options() const {
    std::string text = inputs_text(report_.inputs);
    const std::string run = options_text(report_);
    return text + (text.empty() || run.empty() ? "" : " · ") + run;
  }

  void add_room() {
    const Verdict verdict = verdict_of(report_);
    add(R"("room":{{"memory":{},"outside":{},"kept_free":{},"reserved":{},"at_least":{},"live":[)",
        verdict.memory.count, verdict.outside.count, verdict.kept_free().count, verdict.reserved.count,
        verdict.at_least);
    for (size_t c = 0; c < kCategories; ++c)
      add("{}{}", c == 0 ? "" : ",", report_.memory.peak.by_category[c].count);
    add(R"(]}},"limit":{},)", (verdict.memory - verdict.outside - verdict.kept_free()).count);
  }

  void add_facts() {
    const AllocatorNumbers& peak = report_.memory.phases.peak;
    const ByPhase<Flops>& flops = report_.counts.total.counted;
    add(R"("facts":[["allocated at most","bytes",{}],["reserved at most","bytes",{}],)",
        peak.allocated_bytes.peak, peak.reserved_bytes.peak);
    add(R"(["parameters","elements",{}],["kept for backward","bytes",{}],["FLOPs of a step","flops",{}]],)",
        report_.memory.parameters.all.count, report_.memory.saved.bytes.count, flops.total().count);
  }

  void add_names() {
    out_ += ",\"categories\":[";
    for (int i = 0; i < kCategories; ++i)
      add("{}\"{}\"", i == 0 ? "" : ",", to_string(static_cast<Category>(i)));
    out_ += "],\"names\":[";
    for (size_t i = 0; i < names_.size(); ++i) add("{}{}", i == 0 ? "" : ",", json_string(names_[i]));
    out_ += ']';
  }

  int64_t reserved_in(const StepPart& part) const {
    for (const PhaseRow& row : report_.memory.phases.rows)
      if (row.part == part) return row.numbers.reserved_bytes.peak;
    return 0;
  }

  void add_phases() {
    add(R"("events":{},"peak_event":{},"phases":[)", events(), report_.memory.peak.event);
    for (size_t i = 0; i < schedule_.phases.size(); ++i) {
      const PhaseSpan& span = schedule_.phases[i];
      if (i > 0 && span.begin >= events()) break;
      const bool setup = span.part.phase == Phase::setup;
      std::string title(to_string(span.part.phase));
      if (span.part.micro >= 0) title += fmt::format(" {}", span.part.micro + 1);
      add(R"({}["{}",{},{},{},{}])", i == 0 ? "" : ",", title, setup ? 0 : span.part.step + 1, span.begin,
          span.end, reserved_in(span.part));
    }
    const auto& failed = report_.memory.phases.out_of_memory;
    out_ += failed ? "],\"failed\":" : "],\"failed\":null,";
    if (failed)
      add(R"({{"event":{},"op":{},"module":{},"requested":{},"allocated":{},"reserved":{}}},)", failed->event,
          json_string(failed->op), json_string(failed->module), failed->requested.count,
          failed->allocated.count, failed->reserved.count);
  }

  void add_moments() {
    out_ += "\"moments\":[";
    uint32_t event = 0;
    int64_t at = 0;
    for (const Moment& moment : schedule_.moments) {
      if (moment.event >= events()) break;
      add("{}{},{},{},{}", at_.empty() ? "" : ",", moment.event - event, moment.at - at, moment.op,
          moment.module);
      at_.push_back(moment.event);
      event = moment.event;
      at = moment.at;
    }
    out_ += "],";
  }

  // The moment of an event at which a storage was born, let go or became something else.
  size_t moment_of(uint32_t event) const {
    return static_cast<size_t>(std::ranges::lower_bound(at_, event) - at_.begin());
  }

  void add_stays() {
    out_ += "\"stays\":[";
    size_t before = 0;
    bool first = true;
    for (const StorageStay& stay : input_.stays) {
      if (stay.from >= events()) break;
      const LargeStorage& storage = stay.storage;
      const size_t from = moment_of(stay.from), to = stay.to >= events() ? from : moment_of(stay.to);
      add("{}{},{},{},{},{},{},{},{}", first ? "" : ",", from - before, to - from, storage.bytes.count,
          static_cast<int>(storage.category), name(storage.op), name(std::string(home_of(storage))),
          name(tensor_of(storage)), name(input_.lines.line_of(storage.module, storage.op)));
      before = from;
      first = false;
    }
    out_ += "],";
  }

  void add_peak_contributors() {
    std::vector<LargeStorage> held;
    for (const StorageStay& stay : input_.stays)
      if (stay.from <= report_.memory.peak.event && stay.to > report_.memory.peak.event)
        held.push_back(stay.storage);
    out_ += "\"culprits\":[";
    bool first = true;
    for (const PeakContributor& contributor : peak_contributors_of(held, input_.lines)) {
      add("{}[{},{},{}]", first ? "" : ",", contributor.bytes.count, json_string(contributor.what),
          json_string(contributor.line));
      first = false;
    }
    out_ += "],";
  }

  void add_advice() {
    out_ += "\"advice\":[";
    for (size_t i = 0; i < report_.advice.size(); ++i) {
      const AdviceRow& row = report_.advice[i];
      add("{}[{},{},{},{},{}]", i == 0 ? "" : ",", json_string(words_of(row)), row.allocated.count,
          row.reserved.count, row.flops.count, row.fits);
    }
    out_ += "],";
  }

  void add_compared() {
    if (!input_.compared) {
      out_ += "\"compared\":null,";
      return;
    }
    const ProfileDiff& diff = *input_.compared;
    add(R"("compared":{{"before":{},"after":{},"options":[)", json_string(diff.before),
        json_string(diff.after));
    for (size_t i = 0; i < diff.options.size(); ++i)
      add("{}{}", i == 0 ? "" : ",", json_string(diff.options[i]));
    out_ += "],\"rows\":[";
    const auto number = [](const std::optional<int64_t>& value) {
      return value ? fmt::format("{}", *value) : std::string("null");
    };
    for (size_t i = 0; i < diff.rows.size(); ++i)
      add("{}[{},{},{}]", i == 0 ? "" : ",", json_string(diff.rows[i].figure), number(diff.rows[i].before),
          number(diff.rows[i].after));
    out_ += "]},";
  }

  void add_tables() {
    out_ += "\"tables\":[";
    FigureTable modules = module_table(report_, {.depth = -1, .sort = "", .columns = {}}, true).table;
    modules.words.emplace_back("line");
    for (FigureRow& row : modules.rows)
      row.words.push_back(row.words[0] == "(root)" ? "" : input_.lines.line_of(row.words[0], ""));
    add_table("Modules", modules);
    if (report_.nodes) {
      out_ += ',';
      add_table("Nodes", node_table(report_, {}));
    }
    out_ += ']';
  }

  void add_table(std::string_view title, const FigureTable& table) {
    add(R"({{"title":"{}","words":[)", title);
    for (size_t i = 0; i < table.words.size(); ++i) add("{}\"{}\"", i == 0 ? "" : ",", table.words[i]);
    out_ += "],\"columns\":[";
    for (size_t i = 0; i < table.columns.size(); ++i)
      add(R"({}["{}","{}",{}])", i == 0 ? "" : ",", table.columns[i].title,
          measure_name(table.columns[i].measure), has_sum(table.columns[i].name));
    out_ += "],\"rows\":[";
    for (size_t i = 0; i < table.rows.size(); ++i) {
      out_ += i == 0 ? "[" : ",[";
      for (size_t k = 0; k < table.rows[i].words.size(); ++k)
        add("{}{}", k == 0 ? "" : ",", json_string(table.rows[i].words[k]));
      for (const Figure& figure : table.rows[i].figures)
        std::visit([&](const auto value) { add(",{}", value); }, figure);
      out_ += ']';
    }
    out_ += "]}";
  }

  const PageInput& input_;
  const ProfileReport& report_;
  const Schedule& schedule_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> index_;  // into names_
  std::vector<uint32_t> at_;                       // events of the moments
  std::string out_;
};

}  // namespace

std::string page_data(const PageInput& input) { return PageData(input).json(); }

}  // namespace metaprof
