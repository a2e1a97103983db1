#include "storage/report/json_lines.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "storage/json_values.h"

namespace stepscope::storage {

void JsonLines::begin() {
  text_ += text_.empty() ? "[\n  {" : ",\n  {";
  first_ = true;
}

void JsonLines::key(std::string_view key) {
  if (!first_) text_ += ',';
  first_ = false;
  text_ += '"';
  text_ += key;
  text_ += "\":";
}

void JsonLines::member(std::string_view name, double value) {
  key(name);
  if (std::isnan(value)) {
    text_ += "\"NaN\"";
  } else if (std::isinf(value)) {
    text_ += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    const std::size_t at = text_.size();
    fmt::format_to(std::back_inserter(text_), "{}", value);
    if (text_.find_first_of(".e", at) == std::string::npos) text_ += ".0";  // it stays no integer
  }
}

void JsonLines::member(std::string_view name, const std::optional<double>& value) {
  if (value) return member(name, *value);
  key(name);
  text_ += "null";
}

void JsonLines::member(std::string_view name, std::int64_t value) {
  key(name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
}

void JsonLines::member(std::string_view name, bool value) {
  key(name);
  text_ += value ? "true" : "false";
}

void JsonLines::member(std::string_view name, std::string_view value) {
  key(name);
  text_ += jsonText(value);
}

void putLines(std::string& document, std::string_view key, JsonLines&& lines) {
  const std::string null = fmt::format("\n \"{}\": null", key);
  const std::size_t at = document.find(null);
  document.replace(at + null.size() - 4, 4, std::move(lines).take());
}

}  // namespace stepscope::storage
