#include "storage/blob.h"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <zstd.h>

#include <memory>

namespace stepscope::storage {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

std::string compress(std::string_view bytes) {
  // One context a thread: making one costs more than compressing the spans of a step.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compressCCtx(context.get(), result.data(), result.size(), bytes.data(), bytes.size(), 1);
  result.resize(ZSTD_isError(size) ? 0 : size);
  return result;
}

Result<std::string> decompress(std::string_view blob) {
  const unsigned long long size = ZSTD_getFrameContentSize(blob.data(), blob.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail(ErrorCode::kCorrupt,
                fmt::format("blob of {} bytes: not compressed data; expected a zstd frame", blob.size()));
  if (size > kMaxBlobBytes)
    return fail(ErrorCode::kLimitExceeded, fmt::format("blob: announces {} bytes; at most {}", size, kMaxBlobBytes));
  std::string result(size, '\0');
  const std::size_t got = ZSTD_decompress(result.data(), result.size(), blob.data(), blob.size());
  if (ZSTD_isError(got) || got != size)
    return fail(ErrorCode::kCorrupt,
                fmt::format("blob: {}; expected {} bytes", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size", size));
  return result;
}

Result<std::string> packMessage(const google::protobuf::MessageLite& message, std::int64_t& bytes) {
  std::string raw;
  if (!message.SerializeToString(&raw) || raw.size() > kMaxBlobBytes)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{}: {} bytes; at most {}", message.GetTypeName(), message.ByteSizeLong(), kMaxBlobBytes));
  bytes = static_cast<std::int64_t>(raw.size());
  return compress(raw);
}

Status unpackMessage(std::string_view blob, google::protobuf::MessageLite& message) {
  SS_STORE_ASSIGN(const std::string raw, decompress(blob));
  if (!message.ParseFromString(raw))
    return fail(ErrorCode::kCorrupt, fmt::format("{}: {} bytes that do not parse; expected a snapshot message",
                                                 message.GetTypeName(), raw.size()));
  return {};
}

}  // namespace stepscope::storage
