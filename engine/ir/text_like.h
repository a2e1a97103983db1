// What texts of the graph have in common: they are read like a std::string, wherever their bytes are.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace stepscope {

// Base of a class `Text` with `std::string_view view() const`.
template <typename Text>
class TextLike {
 public:
  operator std::string_view() const { return view(); }          // NOLINT: implicit, it is read as a text
  operator std::string() const { return std::string(view()); }  // NOLINT: likewise
  std::string str() const { return std::string(view()); }
  bool empty() const { return view().empty(); }
  std::size_t size() const { return view().size(); }
  char operator[](std::size_t i) const { return view()[i]; }
  bool starts_with(std::string_view begin) const { return view().starts_with(begin); }
  bool ends_with(std::string_view end) const { return view().ends_with(end); }
  std::size_t find(std::string_view part, std::size_t from = 0) const { return view().find(part, from); }
  std::size_t find(char part, std::size_t from = 0) const { return view().find(part, from); }
  std::size_t rfind(std::string_view part) const { return view().rfind(part); }
  std::size_t rfind(char part) const { return view().rfind(part); }
  std::string substr(std::size_t from, std::size_t count = std::string::npos) const {
    return std::string(view().substr(from, count));
  }

  void clear() { static_cast<Text&>(*this) = Text(); }

  friend std::string operator+(std::string text, const Text& more) { return text += more.view(); }
  friend std::string operator+(const Text& text, std::string_view more) { return text.str() += more; }
  friend std::string operator+(const Text& text, const Text& more) { return text.str() += more.view(); }
  friend bool operator==(const Text& text, std::string_view other) { return text.view() == other; }
  friend std::strong_ordering operator<=>(const Text& text, std::string_view other) { return text.view() <=> other; }
  friend std::ostream& operator<<(std::ostream& out, const Text& text) { return out << text.view(); }

 private:
  std::string_view view() const { return static_cast<const Text&>(*this).view(); }
};

}  // namespace stepscope

// Texts of the graph are formatted as texts.
template <typename Text>
  requires std::derived_from<Text, stepscope::TextLike<Text>>
struct fmt::formatter<Text, char> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const Text& text, Context& context) const {
    const std::string_view view = text.view();
    return fmt::formatter<fmt::string_view>::format({view.data(), view.size()}, context);
  }
};
