// Rows of a JSON array, one a line: of a run of 100,000 steps the text is made at once, without a tree of its members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepscope::storage {

class JsonLines {
 public:
  void begin();  // a row; its members follow, then end()
  void end() { text_ += '}'; }

  void member(std::string_view key, double value);  // NaN and infinities as strings
  void member(std::string_view key, const std::optional<double>& value);
  void member(std::string_view key, std::int64_t value);
  void member(std::string_view key, bool value);
  void member(std::string_view key, std::string_view value);  // bytes that are no text become U+FFFD

  std::string take() && { return text_.empty() ? "[]" : std::move(text_) + "\n ]"; }

 private:
  void key(std::string_view key);

  std::string text_;
  bool first_ = true;  // member of its row
};

// In place of the null under a key of the outermost object of a document with an indent of one: no text within it begins a
// line.
void putLines(std::string& document, std::string_view key, JsonLines&& lines);

}  // namespace stepscope::storage
