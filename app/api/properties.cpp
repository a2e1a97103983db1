// What a program keeps beside the state.
#include <fmt/format.h>

#include "app/api/handles.h"

namespace stepscope::api {
namespace {

Result<Property> propertyFrom(const std::string& name, const ss_property& given) {
  const std::string what = fmt::format("ss_set_property: '{}'", name);
  switch (given.kind) {
    case SS_PROPERTY_INT64: return Property(given.integer);
    case SS_PROPERTY_DOUBLE: return Property(given.number);
    case SS_PROPERTY_STRING: {
      SS_ASSIGN(std::string text, nameOf(what.c_str(), given.text));
      return Property(std::move(text));
    }
    case SS_PROPERTY_TENSOR: {
      SS_ASSIGN(const TensorView view, viewOf(what, given.tensor));
      return Property(Tensor(view.dtype, view.dims, nullptr, view.data).clone());
    }
    default: return invalid(fmt::format("{}: kind {}; expected one of SS_PROPERTY_…, 1 to 4", what, given.kind));
  }
}

void describe(const std::string& name, const Property& value, ss_property& info, Given& given) {
  info.name = given.text(name);
  info.text = "";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    info.kind = SS_PROPERTY_INT64;
    info.integer = *integer;
  } else if (const auto* number = std::get_if<double>(&value)) {
    info.kind = SS_PROPERTY_DOUBLE;
    info.number = *number;
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    info.kind = SS_PROPERTY_STRING;
    info.text = given.text(*text);
  } else {
    const TensorView& view = given.tensor(std::get<Tensor>(value)).view();
    info.kind = SS_PROPERTY_TENSOR;
    info.tensor = given.keep({.size = sizeof(ss_tensor),
                              .dtype = static_cast<std::int32_t>(view.dtype),
                              .dims = given.numbers(view.dims),
                              .rank = view.dims.size(),
                              .data = view.data,
                              .bytes = view.bytes()});
  }
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" {

ss_error* ss_set_property(ss_session* session, const ss_property* property) {
  return guarded("ss_set_property", session, [&](Session& s) -> Status {
    if (!property) return invalid("ss_set_property: the property is NULL; expected one");
    if (property->size < sizeof(ss_property))
      return invalid(fmt::format("ss_set_property: .size is {}; expected sizeof(ss_property), {}", property->size,
                                 sizeof(ss_property)));
    SS_ASSIGN(const std::string name, nameOf("ss_set_property", property->name));
    SS_ASSIGN(Property value, propertyFrom(name, *property));
    SS_TRY(checkProperty(name, value));
    s.trained().properties()[name] = std::move(value);
    return {};
  });
}

ss_error* ss_drop_property(ss_session* session, const char* name) {
  return guarded("ss_drop_property", session, [&](Session& s) -> Status {
    SS_ASSIGN(const std::string text, nameOf("ss_drop_property", name));
    if (s.trained().properties().erase(text) == 0)
      return fail(ErrorCode::kNotFound, fmt::format("ss_drop_property: no property '{}'", text));
    return {};
  });
}

ss_error* ss_properties(ss_session* session, const ss_property* const** list, size_t* count) {
  return guarded("ss_properties", session, [&](Session& s) -> Status {
    if (!list || !count) return invalid("ss_properties: a place for the list is NULL; expected two");
    auto& infos = session->properties;
    infos.clear();
    for (const auto& [name, value] : s.trained().properties()) describe(name, value, infos.add(), infos.given);
    infos.giveOut(list, count);
    return {};
  });
}
}
