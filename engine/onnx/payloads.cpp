#include "engine/onnx/payloads.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>

#include "kernels/status.h"

namespace stepscope {
namespace {

std::uint64_t readVarint(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7, ++at) {
    value |= static_cast<std::uint64_t>(bytes[at] & std::byte{0x7f}) << shift;
    if ((bytes[at] & std::byte{0x80}) == std::byte{0}) return value;
  }
}

// Over the varint that is there, with as many bytes.
void writeVarint(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value) {
  for (bool more = true; more; value >>= 7, ++at) {
    more = (bytes[at] & std::byte{0x80}) != std::byte{0};
    bytes[at] = static_cast<std::byte>((value & 0x7f) | (more ? 0x80 : 0));
  }
  SS_CHECK(value == 0);
}

}  // namespace

std::vector<std::byte> withoutPayloads(std::span<const std::byte> bytes, std::span<const RawPayload> payloads) {
  std::map<std::size_t, std::size_t> shorter;  // place of a length → bytes that it counts no more
  std::size_t left = bytes.size();
  for (const RawPayload& payload : payloads) {
    for (const std::size_t at : payload.lengths) shorter[at] += payload.bytes;
    left -= payload.bytes;
  }
  std::vector<std::byte> kept;
  kept.reserve(left);
  auto length = shorter.begin();
  std::size_t begin = 0, gone = 0;
  const auto keepTo = [&](std::size_t end) {
    kept.insert(kept.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                bytes.begin() + static_cast<std::ptrdiff_t>(end));
    for (; length != shorter.end() && length->first < end; ++length)
      writeVarint(kept, length->first - gone, readVarint(bytes, length->first) - length->second);
  };
  for (const RawPayload& payload : payloads) {
    keepTo(payload.begin);
    begin = payload.begin + payload.bytes;
    gone += payload.bytes;
  }
  keepTo(bytes.size());
  return kept;
}

PayloadsByTensor payloadsByTensor(const onnx::GraphProto& graph, std::span<const std::byte> bytes,
                                  std::span<const RawPayload> payloads) {
  PayloadsByTensor found;
  for (const RawPayload& payload : payloads)
    found[&graph.initializer(static_cast<int>(payload.tensor))] = bytes.subspan(payload.begin, payload.bytes);
  return found;
}

void releasePages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes.size()) / page * page;
  // Best effort: what stays is freed with the whole.
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace stepscope
