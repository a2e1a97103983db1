#include "engine/plugin/attribute_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stepscope {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 24;

std::int32_t kindOf(const AttrValue& value) {
  if (std::holds_alternative<std::int64_t>(value)) return SSP_ATTR_INT;
  if (std::holds_alternative<float>(value)) return SSP_ATTR_FLOAT;
  if (std::holds_alternative<std::string>(value)) return SSP_ATTR_STRING;
  if (std::holds_alternative<std::vector<std::int64_t>>(value)) return SSP_ATTR_INTS;
  if (std::holds_alternative<std::vector<float>>(value)) return SSP_ATTR_FLOATS;
  return 0;
}

ssp_attr viewOf(const char* name, const AttrValue& value) {
  ssp_attr view{sizeof(ssp_attr), kindOf(value), name, 0, 0, nullptr, nullptr, nullptr, 0};
  if (const auto* i = std::get_if<std::int64_t>(&value)) view.i = *i;
  if (const auto* f = std::get_if<float>(&value)) view.f = *f;
  if (const auto* s = std::get_if<std::string>(&value)) view.s = s->c_str();
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) view.ints = ints->data(), view.count = ints->size();
  if (const auto* reals = std::get_if<std::vector<float>>(&value)) view.floats = reals->data(), view.count = reals->size();
  return view;
}

tl::unexpected<Error> wrong(std::string text) { return fail(ErrorCode::kCorrupt, std::move(text)); }

Result<AttrValue> valueOf(const ssp_attr& attr) {
  const auto list = [&](const auto* data) -> Status {
    if (attr.count > kMostElements || (attr.count > 0 && data == nullptr))
      return wrong(fmt::format("attribute '{}' lists {} elements; expected at most {} and a pointer to them", attr.name,
                               attr.count, kMostElements));
    return {};
  };
  switch (attr.kind) {
    case SSP_ATTR_INT: return attr.i;
    case SSP_ATTR_FLOAT: return attr.f;
    case SSP_ATTR_STRING:
      if (attr.s == nullptr) return wrong(fmt::format("attribute '{}' is a string without text; expected one", attr.name));
      return std::string(attr.s);
    case SSP_ATTR_INTS: SS_TRY(list(attr.ints)); return std::vector<std::int64_t>(attr.ints, attr.ints + attr.count);
    case SSP_ATTR_FLOATS: SS_TRY(list(attr.floats)); return std::vector<float>(attr.floats, attr.floats + attr.count);
    default: return wrong(fmt::format("attribute '{}' is of kind {}; expected one of ssp_attr.kind", attr.name, attr.kind));
  }
}

}  // namespace

std::string_view attributeKindName(std::int32_t kind) {
  constexpr std::array<std::string_view, 6> kNames{"", "int", "float", "string", "ints", "floats"};
  return kind > 0 && kind < static_cast<std::int32_t>(kNames.size()) ? kNames[static_cast<std::size_t>(kind)] : "";
}

const ssp_attr* AttributeViews::find(const Attributes& attrs, const char* name) {
  if (name == nullptr) return nullptr;
  if (const auto it = attrs.entries().find(std::string_view(name)); it != attrs.entries().end()) {
    ssp_attr view = viewOf(it->first.c_str(), it->second);
    return view.kind == 0 ? nullptr : &views_.emplace_back(view);
  }
  for (const ssp_attr_info& info : schema_)
    if (std::string_view(info.name) == name)
      return &views_.emplace_back(ssp_attr{sizeof(ssp_attr), info.kind, info.name, info.i, info.f,
                                           info.s == nullptr ? "" : info.s, nullptr, nullptr, 0});
  return nullptr;
}

Result<Attributes> attributesOf(const ssp_attr* attrs, std::uint32_t count) {
  Attributes made;
  if (count > 0 && attrs == nullptr) return wrong(fmt::format("{} attributes at no address; expected one", count));
  for (std::uint32_t i = 0; i < count; ++i) {
    if (attrs[i].size != sizeof(ssp_attr))
      return wrong(fmt::format("ssp_attr {} has size {}; expected {}", i, attrs[i].size, sizeof(ssp_attr)));
    if (attrs[i].name == nullptr) return wrong(fmt::format("ssp_attr {} has no name; expected one", i));
    if (made.has(attrs[i].name)) return wrong(fmt::format("attribute '{}' is there twice; expected once", attrs[i].name));
    SS_ASSIGN(AttrValue value, valueOf(attrs[i]));
    made.set(attrs[i].name, std::move(value));
  }
  return made;
}

std::string attributeProblem(std::span<const ssp_attr_info> schema, const Attributes& attrs) {
  for (const auto& [name, value] : attrs.entries()) {
    const auto info =
        std::find_if(schema.begin(), schema.end(), [&](const ssp_attr_info& known) { return known.name == name; });
    if (info == schema.end()) {
      std::string known;
      for (const ssp_attr_info& other : schema) known += (known.empty() ? "" : ", ") + std::string(other.name);
      return fmt::format("attribute '{}' is not one of the op; known: {}", name, known.empty() ? "none" : known);
    }
    if (const std::int32_t kind = kindOf(value); kind != info->kind)
      return fmt::format("attribute '{}' is {}; expected {}", name, kind == 0 ? "a tensor" : attributeKindName(kind),
                         attributeKindName(info->kind));
  }
  for (const ssp_attr_info& info : schema)
    if (info.required != 0 && !attrs.has(info.name)) return fmt::format("attribute '{}' is missing", info.name);
  return {};
}

}  // namespace stepscope
