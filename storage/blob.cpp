#include "storage/blob.h"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <memory>

namespace stepscope::storage {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

constexpr int kLargestWindow = 27;  // log2 of bytes: what lies further back than that is not found again

Result<std::size_t> announcedSize(std::string_view blob) {
  const unsigned long long size = ZSTD_getFrameContentSize(blob.data(), blob.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail(ErrorCode::kCorrupt,
                fmt::format("blob of {} bytes: not compressed data; expected a zstd frame", blob.size()));
  if (size > kMaxBlobBytes)
    return fail(ErrorCode::kLimitExceeded, fmt::format("blob: announces {} bytes; at most {}", size, kMaxBlobBytes));
  return static_cast<std::size_t>(size);
}

Status checkDecompressed(std::size_t got, std::size_t size) {
  if (!ZSTD_isError(got) && got == size) return {};
  return fail(ErrorCode::kCorrupt,
              fmt::format("blob: {}; expected {} bytes", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size", size));
}

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
  SS_STORE_ASSIGN(const std::size_t size, announcedSize(blob));
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());  // as in compress()
  std::string result(size, '\0');
  SS_STORE_TRY(
      checkDecompressed(ZSTD_decompressDCtx(context.get(), result.data(), result.size(), blob.data(), blob.size()), size));
  return result;
}

std::string compressAfter(std::string_view before, std::string_view bytes) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  const int window = std::clamp(static_cast<int>(std::bit_width(before.size() + bytes.size())), 10, kLargestWindow);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, window);
  // The fast levels forget most of a large prefix; long distance matching does not.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_enableLongDistanceMatching, 1);
  ZSTD_CCtx_refPrefix(context.get(), before.data(), before.size());
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress2(context.get(), result.data(), result.size(), bytes.data(), bytes.size());
  result.resize(ZSTD_isError(size) ? 0 : size);
  return result;
}

Result<std::string> decompressAfter(std::string_view before, std::string_view blob) {
  SS_STORE_ASSIGN(const std::size_t size, announcedSize(blob));
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  ZSTD_DCtx_refPrefix(context.get(), before.data(), before.size());
  std::string result(size, '\0');
  SS_STORE_TRY(
      checkDecompressed(ZSTD_decompressDCtx(context.get(), result.data(), result.size(), blob.data(), blob.size()), size));
  return result;
}

Result<std::string> serialise(const google::protobuf::MessageLite& message) {
  std::string raw;
  if (!message.SerializeToString(&raw) || raw.size() > kMaxBlobBytes)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{}: {} bytes; at most {}", message.GetTypeName(), message.ByteSizeLong(), kMaxBlobBytes));
  return raw;
}

Result<std::string> packMessage(const google::protobuf::MessageLite& message, std::int64_t& bytes) {
  SS_STORE_ASSIGN(const std::string raw, serialise(message));
  bytes = static_cast<std::int64_t>(raw.size());
  return compress(raw);
}

Status unpackMessage(std::string_view blob, google::protobuf::MessageLite& message) {
  SS_STORE_ASSIGN(const std::string raw, decompress(blob));
  return parse(raw, message);
}

Status parse(std::string_view raw, google::protobuf::MessageLite& message) {
  if (!message.ParseFromArray(raw.data(), static_cast<int>(raw.size())))
    return fail(ErrorCode::kCorrupt, fmt::format("{}: {} bytes that do not parse; expected a snapshot message",
                                                 message.GetTypeName(), raw.size()));
  return {};
}

}  // namespace stepscope::storage
