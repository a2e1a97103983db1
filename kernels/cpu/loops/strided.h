// A copy between two strided layouts of one index space, of elements of any size, split over threads.
#pragma once

#include <array>
#include <span>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {

// Strides in elements; they may be 0 (a repeated source) or negative. Neighbouring axes that both sides walk as one are
// merged.
class StridedCopy {
 public:
  static constexpr std::size_t kAxes = 16;
  // Adds the next inner axis. False: more axes than fit.
  bool add(std::int64_t extent, std::int64_t toStride, std::int64_t fromStride);
  std::int64_t elements() const;
  // `size`: bytes of an element, 1, 2, 4 or 8. Both addresses are those of index 0. At least one element.
  void run(std::byte* to, const std::byte* from, std::size_t size, int threads) const;

 private:
  template <typename T>
  void runTyped(T* to, const T* from, int threads) const;

  std::size_t rank_ = 0;  // outermost first
  std::array<std::int64_t, kAxes> extents_{}, to_{}, from_{};
};

// Fills `count` elements of `size` bytes with copies of `value` (zeros when it is null), split over threads.
void fillElements(std::byte* to, const std::byte* value, std::int64_t count, std::size_t size, int threads);

// Operands of a call as bytes.
inline const std::byte* bytesOf(const KernelCall& call, std::size_t i) {
  return static_cast<const std::byte*>(call.inputs[i].data);
}
inline std::byte* resultBytes(const KernelCall& call, std::size_t i) {
  return static_cast<std::byte*>(call.outputs[i].data);
}

// Whether input and output are there, of one type that is moved by memory copies, with known extents.
inline bool movable(const KernelSpec& spec, std::size_t in, std::size_t out) {
  return in < spec.inputs.size() && spec.inputs[in].dtype != DType::kString && takesInput(spec, in, spec.inputs[in].dtype) &&
         takesOutput(spec, out, spec.inputs[in].dtype);
}

}  // namespace stepscope::cpu
