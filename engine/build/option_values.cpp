#include "engine/build/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "engine/build/name_pattern.h"

namespace stepscope {

Result<double> parseNumber(std::string_view name, std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low) || !(value <= high))
    return invalidOption(name, fmt::format("found '{}'; expected a number from {:g} to {:g}", text, low, high));
  return value;
}

Result<std::int64_t> parseWhole(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return invalidOption(name, fmt::format("found '{}'; expected a whole number from {} to {}", text, low, high));
  return value;
}

Result<std::int64_t> parseBytes(std::string_view name, std::string_view text, std::int64_t high) {
  static const std::map<std::string_view, double> units{
      {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = units.find(unit);
  if (error != std::errc() || found == units.end() || !(value >= 0) || !(value * found->second <= static_cast<double>(high)))
    return invalidOption(name, fmt::format("found '{}'; expected a size from 0 to {} bytes, such as 1048576, 755 MiB or "
                                           "2.8GiB",
                                           text, high));
  if (unit.empty()) return parseWhole(name, text, 0, high);  // exact, above 2^53 too
  return static_cast<std::int64_t>(std::llround(value * found->second));
}

Result<bool> parseToggle(std::string_view name, std::string_view text) {
  if (text == "on" || text == "true" || text == "1" || text.empty()) return true;
  if (text == "off" || text == "false" || text == "0") return false;
  return invalidOption(name, fmt::format("found '{}'; expected on or off", text));
}

Status checkChoice(std::string_view name, std::string_view text, std::span<const std::string_view> choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    if (choice == text) return {};
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return invalidOption(name, fmt::format("found '{}'; expected one of {}", text, list));
}

Result<std::pair<std::string, std::string_view>> parseAssignment(std::string_view name, std::string_view text) {
  const auto split = text.rfind('=');
  if (split == std::string_view::npos || split == 0)
    return invalidOption(name, fmt::format("found '{}'; expected NAME=NUMBER", text));
  return std::pair{std::string(text.substr(0, split)), text.substr(split + 1)};
}

Status checkPattern(std::string_view option, std::string_view text) {
  SS_TRY(NamePattern::compile(option, text));
  return {};
}

namespace {

Result<PrecisionForce> parsePrecisionForce(std::string_view text) {
  static const std::map<std::string_view, DType> types{{"fp32", DType::kF32}, {"bf16", DType::kBF16}, {"fp16", DType::kF16}};
  const auto colon = text.rfind(':');  // the regular expression may hold colons
  const auto type = colon == std::string_view::npos ? types.end() : types.find(text.substr(colon + 1));
  if (type == types.end() || colon == 0)
    return invalidOption("precision.force", fmt::format("found '{}'; expected REGEX:fp32, REGEX:bf16 or REGEX:fp16", text));
  SS_TRY(checkPattern("precision.force", text.substr(0, colon)));
  return PrecisionForce{std::string(text.substr(0, colon)), type->second};
}

}  // namespace

Result<std::vector<PrecisionForce>> parsePrecisionForces(std::string_view text) {
  std::vector<PrecisionForce> forces;
  for (std::size_t begin = 0, at = 0; begin < text.size();) {
    at = text.find(' ', std::max(begin, at));
    const std::string_view one = text.substr(begin, at == std::string_view::npos ? at : at - begin);
    const bool ends = one.ends_with(":fp32") || one.ends_with(":bf16") || one.ends_with(":fp16");
    if (at != std::string_view::npos && !ends) {
      ++at;
      continue;
    }
    SS_ASSIGN(PrecisionForce force, parsePrecisionForce(one));
    forces.push_back(std::move(force));
    if (at == std::string_view::npos) break;
    begin = ++at;
  }
  return forces;
}

Result<ParameterGroup> parseGroup(std::string_view text) {
  // REGEX:key=value,key=value; the regular expression may hold colons, the settings may not.
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalidOption("group", fmt::format("found '{}'; expected REGEX:lr=X,weight_decay=Y", text));
  SS_TRY(checkPattern("group", text.substr(0, colon)));
  ParameterGroup group{std::string(text.substr(0, colon)), {}, {}};
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (equals == std::string_view::npos || (key != "lr" && key != "weight_decay"))
      return invalidOption("group", fmt::format("found '{}'; expected lr=X or weight_decay=X", item));
    SS_ASSIGN(const double value, parseNumber("group", item.substr(equals + 1), 0, 1e30));
    (key == "lr" ? group.lr : group.weightDecay) = value;
  }
  return group;
}

}  // namespace stepscope
