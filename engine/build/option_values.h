// What people write as the value of an option. Errors name the option, what was found and what was expected.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/build/options.h"

namespace stepscope {

Result<double> parseNumber(std::string_view name, std::string_view text, double low, double high);
Result<std::int64_t> parseWhole(std::string_view name, std::string_view text, std::int64_t low, std::int64_t high);
// A size in bytes: a whole number, or a number with a unit such as "755 MiB" or "2.8GiB".
Result<std::int64_t> parseBytes(std::string_view name, std::string_view text, std::int64_t high);
Result<bool> parseToggle(std::string_view name, std::string_view text);  // on, off
Result<std::pair<std::string, std::string_view>> parseAssignment(std::string_view name,
                                                                 std::string_view text);  // NAME=VALUE
// REGEX:TYPE, several separated by blanks, as they are shown where several were set. A regular expression may hold blanks.
Result<std::vector<PrecisionForce>> parsePrecisionForces(std::string_view text);
Result<ParameterGroup> parseGroup(std::string_view text);  // REGEX:lr=X,weight_decay=Y
Status checkChoice(std::string_view name, std::string_view text, std::span<const std::string_view> choices);
Status checkPattern(std::string_view name, std::string_view text);  // a regular expression

}  // namespace stepscope
