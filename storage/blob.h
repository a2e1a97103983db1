// Compressed messages: zstd of the protobuf bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/error.h"

namespace google::protobuf {
class MessageLite;
}

namespace stepscope::storage {

inline constexpr std::uint64_t kMaxBlobBytes = std::uint64_t{512} << 20;  // after decompression

std::string compress(std::string_view bytes);

// Errors: kCorrupt (not a zstd frame, or damaged), kLimitExceeded (announces more than kMaxBlobBytes).
Result<std::string> decompress(std::string_view blob);

// Sets `bytes` to the size before compression. Errors: kLimitExceeded when the message is too large for protobuf.
Result<std::string> packMessage(const google::protobuf::MessageLite& message, std::int64_t& bytes);
Status unpackMessage(std::string_view blob, google::protobuf::MessageLite& message);

}  // namespace stepscope::storage
