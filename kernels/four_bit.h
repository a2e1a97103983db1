// Weights in four bits: blocks of a matrix share a scale, elements are codes of a table. As bitsandbytes stores them.
//
//   w[i] = table[code of i] · absmax[i / block],  code of i = the high half of byte i / 2 for an even i, the low half for an
//   odd one
//
// The matrix is [rows, columns], row-major, and blocks run on from one row to the next.
// Source     bitsandbytes (QLoRA, arXiv:2305.14314): NF4 are quantiles of a normal distribution, FP4 one sign, two bits of
// exponent, one
//            of mantissa; ONNX Runtime's contrib operator MatMulBnb4.
#pragma once

#include <array>
#include <cstdint>

namespace stepscope {

// What each of the sixteen codes stands for.
using FourBitTable = std::array<float, 16>;

// FP4: a sign, two bits of exponent, one of mantissa, scaled so that the largest is 1.
inline constexpr FourBitTable kFp4{0.0F,  5.208333333e-03F,  0.66666667F,  1.0F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
                                   -0.0F, -5.208333333e-03F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
// NF4: quantiles of the normal distribution, the outermost at -1 and 1.
inline constexpr FourBitTable kNf4{-1.0F,
                                   -0.6961928009986877F,
                                   -0.5250730514526367F,
                                   -0.39491748809814453F,
                                   -0.28444138169288635F,
                                   -0.18477343022823334F,
                                   -0.09105003625154495F,
                                   0.0F,
                                   0.07958029955625534F,
                                   0.16093020141124725F,
                                   0.24611230194568634F,
                                   0.33791524171829224F,
                                   0.44070982933044434F,
                                   0.5626170039176941F,
                                   0.7229568362236023F,
                                   1.0F};

// Attribute quant_type of MatMulBnb4: 0 is FP4, 1 is NF4.
inline const FourBitTable& fourBitTable(std::int64_t quantType) { return quantType == 0 ? kFp4 : kNf4; }

// The code of element i of a packed matrix.
inline std::uint8_t fourBitCode(const std::uint8_t* packed, std::int64_t i) {
  return i % 2 == 0 ? packed[i / 2] >> 4 : packed[i / 2] & 0xF;
}

}  // namespace stepscope
