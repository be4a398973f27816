#include "reports/html_page.h"

#include <fmt/format.h>

#include <iterator>

#include "core/append.h"
#include "formats/json_string.h"
#include "reports/format.h"
#include "reports/module_table.h"
#include "reports/node_table.h"
#include "reports/page_files.h"

namespace metaprof {
namespace {

class PageData {
 public:
  PageData(const ProfileReport& report, const Schedule& schedule, const std::vector<LargeStorage>& at_peak)
      : report_(report), schedule_(schedule), at_peak_(at_peak) {}

  std::string json() && {
    add(R"({{"model":{},"device":{},"options":{},"verdict":{},"fits":{},)", json_string(report_.model),
        json_string(report_.device_title), json_string(options()), json_string(verdict_line(report_)),
        verdict_of(report_).fits);
    add_facts();
    add_names();
    const Verdict verdict = verdict_of(report_);
    add(R"("events":{},"peak_event":{},"limit":{},"failed":{},)", events(), report_.memory.peak.event,
        (verdict.memory - verdict.outside - verdict.kept_free()).count,
        report_.memory.phases.out_of_memory.has_value());
    add_phases();
    add_changes();
    add_peak();
    out_ += "\"tables\":[";
    add_table("Modules", module_table(report_, {.depth = -1, .sort = "", .columns = {}}, true).table);
    if (report_.nodes) {
      out_ += ',';
      add_table("Nodes", node_table(report_, {}));
    }
    out_ += ',';
    add_table("At the peak", peak_table());
    return std::move(out_) + "]}";
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    append(out_, format, std::forward<Args>(args)...);
  }

  // What was run: where memory ran out, until then.
  size_t events() const {
    const size_t all = schedule_.phases.empty() ? 0 : schedule_.phases.back().end;
    const auto& failed = report_.memory.phases.out_of_memory;
    return failed ? std::min<size_t>(failed->event, all) : all;
  }

  std::string options() const {
    std::string text;
    for (const InputRow& input : report_.inputs)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", input.name, short_name(input.dtype),
                          to_string(SizesView(input.sizes)));
    for (const auto& [name, value] : report_.options) {
      const std::string shown_value = std::visit(
          [](const auto& v) -> std::string {
            using Kind = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<Kind, std::monostate>)
              return "";
            else if constexpr (std::is_same_v<Kind, bool>)
              return v ? "yes" : "";
            else
              return fmt::format("{}", v);
          },
          value);
      if (!shown_value.empty() && !report_.as_usual.contains(name))
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown_value);
    }
    return text;
  }

  void add_facts() {
    const AllocatorNumbers& peak = report_.memory.phases.peak;
    add(R"("facts":[["peak, allocated",{}],["peak, reserved",{}],["memory of the device",{}],)",
        peak.allocated_bytes.peak, peak.reserved_bytes.peak, report_.device_memory.count);
    add(R"(["parameters",{}],["kept for backward",{}]],)", report_.memory.parameters.all.bytes.count,
        report_.memory.saved.bytes.count);
  }

  void add_names() {
    out_ += "\"categories\":[";
    for (int i = 0; i < kCategories; ++i)
      add("{}\"{}\"", i == 0 ? "" : ",", to_string(static_cast<Category>(i)));
    out_ += "],\"names\":[";
    for (size_t i = 0; i < schedule_.names.size(); ++i)
      add("{}{}", i == 0 ? "" : ",", json_string(schedule_.names[i]));
    out_ += "],";
  }

  void add_phases() {
    out_ += "\"phases\":[";
    for (size_t i = 0; i < schedule_.phases.size(); ++i) {
      const PhaseSpan& span = schedule_.phases[i];
      if (i > 0 && span.begin >= events()) break;
      std::string name(to_string(span.part.phase));
      if (span.part.phase != Phase::setup) name += fmt::format(" {}", span.part.step + 1);
      if (span.part.micro >= 0) name += fmt::format(".{}", span.part.micro);
      add(R"({}["{}",{},{}])", i == 0 ? "" : ",", name, span.begin, span.end);
    }
    out_ += "],";
  }

  void add_changes() {
    out_ += "\"changes\":[";
    BytesByCategory before{};
    uint32_t event = 0;
    bool first = true;
    for (const Moment& moment : schedule_.moments) {
      if (moment.event > events()) break;
      for (size_t c = 0; c < before.size(); ++c) {
        const int64_t difference = (moment.by_category[c] - before[c]).count;
        if (difference == 0) continue;
        add("{}{},{},{},{},{}", first ? "" : ",", moment.event - event, moment.op, moment.module, c,
            difference);
        event = moment.event;
        first = false;
      }
      before = moment.by_category;
    }
    out_ += "],";
  }

  static std::string label(const LargeStorage& storage) {
    std::string text = storage.name.empty() ? storage.op : storage.name;
    if (storage.shape)
      text += fmt::format(" {}{}", short_name(storage.dtype), to_string(SizesView(*storage.shape)));
    return text;
  }

  void add_peak() {
    out_ += "\"at_peak\":[";
    for (size_t i = 0; i < at_peak_.size(); ++i) {
      const LargeStorage& storage = at_peak_[i];
      add("{}[{},{},{},{}]", i == 0 ? "" : ",", storage.bytes.count, static_cast<int>(storage.category),
          json_string(storage.module), json_string(label(storage)));
    }
    out_ += "],";
  }

  FigureTable peak_table() const {
    FigureTable table;
    table.words = {"storage", "category", "operator", "module"};
    table.columns.push_back({"bytes", "bytes", Measure::bytes});
    for (const LargeStorage& storage : at_peak_)
      table.rows.push_back(
          {{label(storage), std::string(to_string(storage.category)), storage.op, storage.module},
           {storage.bytes.count}});
    return table;
  }

  static std::string_view measure_name(Measure measure) {
    switch (measure) {
      case Measure::bytes: return "bytes";
      case Measure::flops: return "flops";
      case Measure::seconds: return "seconds";
      default: return "elements";
    }
  }

  void add_table(std::string_view title, const FigureTable& table) {
    add(R"({{"title":"{}","words":[)", title);
    for (size_t i = 0; i < table.words.size(); ++i) add("{}\"{}\"", i == 0 ? "" : ",", table.words[i]);
    out_ += "],\"columns\":[";
    for (size_t i = 0; i < table.columns.size(); ++i)
      add(R"({}["{}","{}"])", i == 0 ? "" : ",", table.columns[i].title,
          measure_name(table.columns[i].measure));
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

  const ProfileReport& report_;
  const Schedule& schedule_;
  const std::vector<LargeStorage>& at_peak_;
  std::string out_;
};

// Replaces the place holder, which stands once in the page.
void fill(std::string& page, std::string_view place, std::string_view text) {
  const size_t at = page.find(place);
  if (at != page.npos) page.replace(at, place.size(), text);
}

}  // namespace

std::string html_page(const ProfileReport& report, const Schedule& schedule,
                      const std::vector<LargeStorage>& at_peak) {
  std::string page(page_html);
  fill(page, "/*css*/", page_css);
  fill(page, "/*js*/", page_js);
  fill(page, "/*data*/", PageData(report, schedule, at_peak).json());
  return page;
}

}  // namespace metaprof
