// float16 and bfloat16 as storage types: converted to float for every operation, rounded to nearest even on store.
// Source: IEEE 754 binary16; bfloat16 = upper half of binary32.
#pragma once

#include <bit>
#include <cstdint>

namespace stepscope {

struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  Float16(float value)
      : bits(fromFloat(value)) {}  // NOLINT: implicit on purpose, so kernels can be templates over the element
  operator float() const { return toFloat(bits); }  // NOLINT
  static std::uint16_t fromFloat(float value);
  static float toFloat(std::uint16_t bits);
};

struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(fromFloat(value)) {}                                                // NOLINT
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }  // NOLINT
  static std::uint16_t fromFloat(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((word >> 16) | 0x40u);
    return static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

// IEEE 754 binary16 to binary32, exact.
inline float Float16::toFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

inline std::uint16_t Float16::fromFloat(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
  const std::uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 aligns the mantissa and rounds to nearest even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace stepscope
