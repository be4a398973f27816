#include "reports/tables/json_text.h"

#include <nlohmann/json.hpp>

#include "core/shown_text.h"

namespace metaprof {

std::string json_text(const nlohmann::ordered_json& json) {
  return shown_json(json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) + "\n";
}

}  // namespace metaprof
