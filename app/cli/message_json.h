// A snapshot as JSON: every field by its name in the .proto file, numbers as numbers, enumerations by name. What was not set
// stands there with its zero, so that a reader finds every key.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>

namespace stepscope::cli {

// Integers of 64 bits are numbers too (protobuf's own writer makes strings of them), and so are extents of shapes (`dims`)
// that are no symbols. Bytes are left out, messages that were not set are null.
nlohmann::json messageJson(const google::protobuf::Message& message);

}  // namespace stepscope::cli
