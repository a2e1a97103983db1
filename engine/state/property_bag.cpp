#include "engine/state/property_bag.h"

#include <fmt/format.h>

#include <charconv>

namespace stepscope {
namespace {

// Whether the bytes are UTF-8: a header of JSON can hold nothing else.
bool isUtf8(std::string_view text) {
  std::size_t more = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (more > 0) {
      if ((byte & 0xC0U) != 0x80U) return false;
      --more;
    } else if (byte >= 0xF0U && byte < 0xF5U) {
      more = 3;
    } else if (byte >= 0xE0U && byte < 0xF0U) {
      more = 2;
    } else if (byte >= 0xC2U && byte < 0xE0U) {
      more = 1;
    } else if (byte >= 0x80U) {
      return false;
    }
  }
  return more == 0;
}

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Status checkProperty(const std::string& name, const Property& value) {
  if (name.empty() || !isUtf8(name)) return invalid("property: its name is empty or not UTF-8; expected a name");
  if (const auto* text = std::get_if<std::string>(&value); text && !isUtf8(*text))
    return invalid(fmt::format("property '{}': its text is not UTF-8; expected that, or a tensor of bytes", name));
  if (const auto* tensor = std::get_if<Tensor>(&value); tensor && (!tensor->valid() || tensor->dtype() == DType::kString))
    return invalid(fmt::format("property '{}': a tensor without numbers; expected elements of a fixed size", name));
  return {};
}

std::string propertyText(const Property& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("int64 {}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("double {}", *number);
  const auto* text = std::get_if<std::string>(&value);
  SS_CHECK(text != nullptr);
  return "string " + *text;
}

Result<Property> propertyOf(const std::string& name, const std::string& text) {
  const std::size_t space = text.find(' ');
  const std::string_view kind = std::string_view(text).substr(0, space),
                         rest = space == std::string::npos ? "" : std::string_view(text).substr(space + 1);
  std::int64_t integer = 0;
  double number = 0;
  if (kind == "int64" && parse(rest, integer)) return Property(integer);
  if (kind == "double" && parse(rest, number)) return Property(number);
  if (kind == "string") return Property(std::string(rest));
  return fail(ErrorCode::kCorrupt,
              fmt::format("property '{}': '{}'; expected int64, double or string and its value", name, text.substr(0, 60)));
}

}  // namespace stepscope
