#include "engine/onnx/unknown_fields.h"

#include <google/protobuf/unknown_field_set.h>

namespace stepscope {
namespace {

template <typename Visit>
void eachString(const google::protobuf::Message& message, int number, Visit visit) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      visit(field.length_delimited());
  }
}

}  // namespace

Metadata unknownMetadata(const google::protobuf::Message& message, int number) {
  Metadata metadata;
  eachString(message, number, [&](const std::string& bytes) {
    onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(bytes)) metadata[entry.key()] = entry.value();
  });
  return metadata;
}

std::string unknownString(const google::protobuf::Message& message, int number) {
  std::string last;
  eachString(message, number, [&](const std::string& bytes) { last = bytes; });
  return last;
}

std::vector<std::string> unknownMessages(const google::protobuf::Message& message, int number) {
  std::vector<std::string> all;
  eachString(message, number, [&](const std::string& bytes) { all.push_back(bytes); });
  return all;
}

void addUnknownMetadata(google::protobuf::Message& message, int number, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto entry;
  entry.set_key(key);
  entry.set_value(value);
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, entry.SerializeAsString());
}

}  // namespace stepscope
