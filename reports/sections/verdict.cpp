#include "reports/sections/verdict.h"

#include <fmt/format.h>

#include "core/formats/display.h"

namespace metaprof {

std::string verdict_line(const Verdict& verdict) {
  const std::string device = shown(verdict.device, 60);
  std::string text =
      verdict.ended.empty()
          ? fmt::format("{} {}: needs ", verdict.fits ? "FITS" : "DOES NOT FIT", device)
          : fmt::format("ENDED BY {}: until then, {} needs ", shown(verdict.ended, 120), device);
  text += fmt::format("{}{}", verdict.at_least ? "more than " : "", human_bytes(verdict.reserved.count));
  if (verdict.outside.count > 0)
    text += fmt::format(" + {} outside the allocator", human_bytes(verdict.outside.count));
  text += fmt::format(" of {}, margin {:g} %", human_bytes(verdict.memory.count), 100 * verdict.margin);
  if (verdict.margin > 0) text += fmt::format(" ({})", human_bytes(verdict.kept_free().count));
  const int64_t left = verdict.left().count;
  if (verdict.fits || (!verdict.ended.empty() && left >= 0))
    return text + fmt::format("; {} stay free", human_bytes(left));
  return left < 0 && !verdict.at_least ? text + fmt::format("; {} are missing", human_bytes(-left)) : text;
}

std::string runs_from_line(const Verdict& verdict, std::optional<Bytes> runs_from) {
  if (!runs_from || *runs_from >= verdict.reserved) return "";
  return fmt::format(
      "runs from {}: with less than {} the allocator frees its cache and asks again, which takes time\n",
      human_bytes(runs_from->count), human_bytes(verdict.reserved.count));
}

}  // namespace metaprof
