// Fields that ONNX added after the classes of this build (1.12), read from and written to the unknown fields.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

namespace stepscope {

// Field numbers of newer versions of onnx.proto.
inline constexpr int kNodeOverloadField = 8;
inline constexpr int kNodeMetadataField = 9;
inline constexpr int kValueInfoMetadataField = 4;
inline constexpr int kGraphMetadataField = 16;
inline constexpr int kTensorMetadataField = 16;
inline constexpr int kFunctionAttributeField = 11;
inline constexpr int kFunctionValueInfoField = 12;
inline constexpr int kFunctionOverloadField = 13;
inline constexpr int kFunctionMetadataField = 14;

// Keys and values of metadata_props.
using Metadata = std::map<std::string, std::string>;

// metadata_props kept in unknown field `number` as StringStringEntryProto messages; entries that do not parse are left out.
Metadata unknownMetadata(const google::protobuf::Message& message, int number);
// The last string in unknown field `number`, or "".
std::string unknownString(const google::protobuf::Message& message, int number);
// All messages of unknown field `number` as wire bytes.
std::vector<std::string> unknownMessages(const google::protobuf::Message& message, int number);

// Appends one entry to metadata_props in unknown field `number`.
void addUnknownMetadata(google::protobuf::Message& message, int number, const std::string& key, const std::string& value);

}  // namespace stepscope
