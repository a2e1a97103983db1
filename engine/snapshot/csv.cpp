#include "engine/snapshot/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace stepscope {
namespace {

// "-1.5e-3" begins like a formula and is none.
bool isNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string csvCell(std::string_view text) {
  std::string cell;
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  if (formula && !isNumber(text)) cell += '\'';
  bool quote = false;
  for (char c : text) {
    if (c == '\0') continue;  // no reader of CSV takes it
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f) {
      cell += fmt::format("\\x{:02x}", byte);
      continue;
    }
    quote = quote || c == '"' || c == ',' || c == '\n' || c == '\r';
    if (c == '"') cell += '"';
    cell += c;
  }
  return quote ? fmt::format("\"{}\"", cell) : cell;
}

CsvTable::CsvTable(std::span<const std::string> names) {
  for (const std::string& name : names) field(name);
  endLine();
}

void CsvTable::field(std::int64_t value) { put(fmt::format("{}", value)); }

void CsvTable::field(double value) {
  if (std::isnan(value)) return put("NaN");
  if (std::isinf(value)) return put(value > 0 ? "Infinity" : "-Infinity");
  put(fmt::format("{}", value));
}

void CsvTable::field(const std::optional<double>& value) { return value ? field(*value) : put({}); }

void CsvTable::endLine() {
  text_ += "\r\n";
  first_ = true;
}

void CsvTable::put(std::string_view cell) {
  if (!first_) text_ += ',';
  first_ = false;
  text_ += cell;
}

}  // namespace stepscope
