#include "app/cli/message_json.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/snapshot/extent.h"

namespace stepscope::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::json;

// An extent may be a symbol, so the message has texts.
Json textJson(const FieldDescriptor* f, std::string text) {
  const auto extent = f->name() == "dims" ? extentOf(text) : std::nullopt;
  return extent ? Json(*extent) : Json(std::move(text));
}

// The field, or its element `index` where that is not below 0.
Json valueOf(const Message& m, const Reflection& r, const FieldDescriptor* f, int index) {
  const bool one = index < 0;
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return one ? r.GetInt32(m, f) : r.GetRepeatedInt32(m, f, index);
    case FieldDescriptor::CPPTYPE_INT64: return one ? r.GetInt64(m, f) : r.GetRepeatedInt64(m, f, index);
    case FieldDescriptor::CPPTYPE_UINT32: return one ? r.GetUInt32(m, f) : r.GetRepeatedUInt32(m, f, index);
    case FieldDescriptor::CPPTYPE_UINT64: return one ? r.GetUInt64(m, f) : r.GetRepeatedUInt64(m, f, index);
    case FieldDescriptor::CPPTYPE_DOUBLE: return one ? r.GetDouble(m, f) : r.GetRepeatedDouble(m, f, index);
    case FieldDescriptor::CPPTYPE_FLOAT: return one ? r.GetFloat(m, f) : r.GetRepeatedFloat(m, f, index);
    case FieldDescriptor::CPPTYPE_BOOL: return one ? r.GetBool(m, f) : r.GetRepeatedBool(m, f, index);
    case FieldDescriptor::CPPTYPE_ENUM: return (one ? r.GetEnum(m, f) : r.GetRepeatedEnum(m, f, index))->name();
    case FieldDescriptor::CPPTYPE_STRING: return textJson(f, one ? r.GetString(m, f) : r.GetRepeatedString(m, f, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (one) return r.HasField(m, f) ? messageJson(r.GetMessage(m, f)) : Json(nullptr);
      return messageJson(r.GetRepeatedMessage(m, f, index));
  }
  return nullptr;
}

}  // namespace

Json messageJson(const Message& message) {
  const Reflection& r = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* f = message.GetDescriptor()->field(i);
    if (f->type() == FieldDescriptor::TYPE_BYTES) continue;
    Json& out = object[f->name()];
    if (!f->is_repeated()) {
      out = valueOf(message, r, f, -1);
    } else if (f->is_map()) {
      out = Json::object();
      for (int k = 0; k < r.FieldSize(message, f); ++k) {
        const Message& entry = r.GetRepeatedMessage(message, f, k);
        const Json key = valueOf(entry, *entry.GetReflection(), f->message_type()->map_key(), -1);
        out[key.is_string() ? key.get<std::string>() : key.dump()] =
            valueOf(entry, *entry.GetReflection(), f->message_type()->map_value(), -1);
      }
    } else {
      out = Json::array();
      for (int k = 0; k < r.FieldSize(message, f); ++k) out.push_back(valueOf(message, r, f, k));
    }
  }
  return object;
}

}  // namespace stepscope::cli
