#include "app/cli/setting_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepscope::cli {

nlohmann::json settingJson(std::string_view option, const std::string& value, const std::vector<OptionInfo>& table) {
  const auto info = std::ranges::find(table, option, &OptionInfo::name);
  if (info == table.end() || (info->kind != "count" && info->kind != "bytes" && info->kind != "number")) return value;
  nlohmann::json number = nlohmann::json::parse(value, nullptr, false);
  return number.is_number() ? number : nlohmann::json(value);
}

}  // namespace stepscope::cli
