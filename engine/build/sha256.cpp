#include "engine/build/sha256.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

namespace stepscope {
namespace {

constexpr std::size_t kBlock = 64, kRounds = 64;

// The first 32 bits of the fractions of square roots (the state) and cube roots (the round constants) of the first primes,
// in integers: floor(2^32 * root) of numbers below 2^9 needs 41 bits.
constexpr bool isPrime(std::uint32_t n) {
  for (std::uint32_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

// The bits of the root, from the highest: 2^32 root = r where r^power <= n 2^(32 power). In 128 bits.
constexpr std::uint32_t fractionOfRoot(std::uint32_t n, int power) {
  using Wide = unsigned __int128;
  std::uint64_t root = 0;
  for (int bit = 36; bit >= 0; --bit) {
    const std::uint64_t trial = root | std::uint64_t{1} << bit;
    const Wide square = Wide{trial} * trial;
    // power 3: compare trial^3 with n 2^96 without leaving 128 bits.
    const bool fits = power == 2 ? square <= Wide{n} << 64 : square <= (Wide{n} << 96) / trial;
    if (fits) root = trial;
  }
  return static_cast<std::uint32_t>(root);
}

template <std::size_t kCount>
constexpr std::array<std::uint32_t, kCount> fractions(int power) {
  std::array<std::uint32_t, kCount> result{};
  std::uint32_t n = 2;
  for (std::uint32_t& word : result) {
    while (!isPrime(n)) ++n;
    word = fractionOfRoot(n++, power);
  }
  return result;
}

constexpr auto kStart = fractions<8>(2);
constexpr auto kConstants = fractions<kRounds>(3);
static_assert(kStart[0] == 0x6a09e667 && kConstants[0] == 0x428a2f98 && kConstants[63] == 0xc67178f2);

void compress(std::array<std::uint32_t, 8>& state, const unsigned char* block) {
  std::array<std::uint32_t, kRounds> w{};
  for (std::size_t t = 0; t < 16; ++t)
    for (std::size_t byte = 0; byte < 4; ++byte) w[t] = w[t] << 8 | block[4 * t + byte];
  for (std::size_t t = 16; t < kRounds; ++t) {
    const std::uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[t - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < kRounds; ++t) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kConstants[t] + w[t];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::array<std::uint32_t, 8> state = kStart;
  std::size_t done = 0;
  for (; done + kBlock <= bytes.size(); done += kBlock)
    compress(state, reinterpret_cast<const unsigned char*>(bytes.data()) + done);
  std::string tail(bytes.substr(done));
  tail += '\x80';
  while (tail.size() % kBlock != kBlock - 8) tail += '\0';
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift);
  for (std::size_t at = 0; at < tail.size(); at += kBlock)
    compress(state, reinterpret_cast<const unsigned char*>(tail.data()) + at);
  std::string text;
  for (const std::uint32_t word : state) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace stepscope
