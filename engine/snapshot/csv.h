// Tables as RFC 4180 CSV: comma, CRLF, one header line, "." as decimal point whatever the locale. What the window exports
// and what reports write comes from here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepscope {

// One field. Text that a spreadsheet would run as a formula gets a leading apostrophe; control characters other than line
// ends and tabs, which a terminal obeys, become \xNN.
std::string csvCell(std::string_view text);

class CsvTable {
 public:
  // Names of the columns, comma separated: text of the program, written as it is.
  explicit CsvTable(std::string_view header) : text_(header) { text_ += "\r\n"; }
  explicit CsvTable(std::span<const std::string> names);  // from a file, so escaped

  void field(std::string_view text) { put(csvCell(text)); }
  void field(std::int64_t value);
  void field(double value);                        // shortest text that reads back the same; NaN, Infinity, -Infinity
  void field(const std::optional<double>& value);  // empty: an empty field
  void endLine();

  template <typename... Fields>
  void line(const Fields&... fields) {
    (one(fields), ...);
    endLine();
  }

  std::string take() && { return std::move(text_); }

 private:
  template <typename T>
  void one(const T& value) {
    if constexpr (std::is_integral_v<T>)
      field(static_cast<std::int64_t>(value));
    else
      field(value);
  }
  void put(std::string_view cell);

  std::string text_;
  bool first_ = true;  // field of its line
};

}  // namespace stepscope
