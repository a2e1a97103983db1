#include "kernels/cuda_device/staging.h"

#include <algorithm>
#include <cstring>

namespace stepscope::cuda {

#define SS_CU_TRY(expr)                                                      \
  do {                                                                       \
    if (const CuResult result = (expr); result != kCuSuccess) return result; \
  } while (false)

Staging::~Staging() {
  for (Piece& piece : pieces_) {
    if (piece.done) driver_.eventDestroy(piece.done);
    if (piece.pinned) driver_.freeHost(piece.pinned);
  }
}

void Staging::copyOnHost(void* data) {
  const Piece& piece = *static_cast<const Piece*>(data);
  std::memcpy(piece.to, piece.from, piece.bytes);
}

CuResult Staging::next(Piece** piece) {
  Piece& next = pieces_[at_];
  at_ = (at_ + 1) % kPieces;
  *piece = &next;
  if (next.pinned) return driver_.eventSynchronize(next.done);
  if (!next.done) SS_CU_TRY(driver_.eventCreate(&next.done, kCuNoTiming));
  void* pinned = nullptr;
  SS_CU_TRY(driver_.allocateHost(&pinned, static_cast<std::size_t>(kPieceBytes), kCuHostReachable));
  next.pinned = static_cast<std::byte*>(pinned);
  return kCuSuccess;
}

CuResult Staging::copyLater(Piece& piece, void* to, const void* from, std::size_t bytes, CuStream stream) {
  piece.to = to;
  piece.from = from;
  piece.bytes = bytes;
  return driver_.hostFunction(stream, copyOnHost, &piece);
}

CuResult Staging::toDevice(CuAddress to, const void* from, std::int64_t bytes, CuStream stream) {
  for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
    const auto part = static_cast<std::size_t>(std::min(kPieceBytes, bytes - at));
    Piece* piece = nullptr;
    SS_CU_TRY(next(&piece));
    SS_CU_TRY(copyLater(*piece, piece->pinned, static_cast<const std::byte*>(from) + at, part, stream));
    SS_CU_TRY(driver_.copyIn(to + static_cast<CuAddress>(at), piece->pinned, part, stream));
    SS_CU_TRY(driver_.eventRecord(piece->done, stream));
  }
  return kCuSuccess;
}

CuResult Staging::toHost(void* to, CuAddress from, std::int64_t bytes, CuStream stream) {
  for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
    const auto part = static_cast<std::size_t>(std::min(kPieceBytes, bytes - at));
    Piece* piece = nullptr;
    SS_CU_TRY(next(&piece));
    SS_CU_TRY(driver_.copyOut(piece->pinned, from + static_cast<CuAddress>(at), part, stream));
    SS_CU_TRY(copyLater(*piece, static_cast<std::byte*>(to) + at, piece->pinned, part, stream));
    SS_CU_TRY(driver_.eventRecord(piece->done, stream));
  }
  return kCuSuccess;
}

CuResult Staging::withinHost(void* to, const void* from, std::int64_t bytes, CuStream stream) {
  Piece* piece = nullptr;
  SS_CU_TRY(next(&piece));
  SS_CU_TRY(copyLater(*piece, to, from, static_cast<std::size_t>(bytes), stream));
  return driver_.eventRecord(piece->done, stream);
}

}  // namespace stepscope::cuda
