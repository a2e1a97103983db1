// Copies between memory of the host that is not pinned and the GPU: through pinned pieces, so that they run behind the
// program like everything else on a stream. The host side of a piece is copied when the stream comes to it, not before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class Staging {
 public:
  // The context of `driver` is current wherever a function of this class is called.
  explicit Staging(const Driver& driver) : driver_(driver) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Puts the copy of `bytes` on the stream; waits where all pieces are on their way. Errors: what the driver answers.
  CuResult toDevice(CuAddress to, const void* from, std::int64_t bytes, CuStream stream);
  CuResult toHost(void* to, CuAddress from, std::int64_t bytes, CuStream stream);
  CuResult withinHost(void* to, const void* from, std::int64_t bytes, CuStream stream);

 private:
  static constexpr std::size_t kPieces = 8;
  static constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
  struct Piece {
    std::byte* pinned = nullptr;
    CuEvent done = nullptr;  // its last use
    // What the stream copies on the host.
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  static void copyOnHost(void* piece);
  CuResult next(Piece** piece);
  CuResult copyLater(Piece& piece, void* to, const void* from, std::size_t bytes, CuStream stream);

  const Driver& driver_;
  std::array<Piece, kPieces> pieces_;
  std::size_t at_ = 0;
};

}  // namespace stepscope::cuda
