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

// A zstd frame.
std::string compress(std::string_view bytes);

// Errors: kCorrupt (not a zstd frame, or damaged), kLimitExceeded (announces more than kMaxBlobBytes).
Result<std::string> decompress(std::string_view blob);

// The same with `before` at hand: what stands in it too costs next to nothing. It is read with the same `before` alone.
std::string compressAfter(std::string_view before, std::string_view bytes);
Result<std::string> decompressAfter(std::string_view before, std::string_view blob);

// Errors: kLimitExceeded when the message is too large; kCorrupt when the bytes are none.
Result<std::string> serialise(const google::protobuf::MessageLite& message);
Status parse(std::string_view raw, google::protobuf::MessageLite& message);

// Both in one; `bytes` becomes the size before compression.
Result<std::string> packMessage(const google::protobuf::MessageLite& message, std::int64_t& bytes);
Status unpackMessage(std::string_view blob, google::protobuf::MessageLite& message);

}  // namespace stepscope::storage
