// Deterministic damage to the bytes of a file: the same seed does the same. And the file as bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace stepscope::testing {

using Random = std::mt19937_64;  // its numbers are fixed by the standard

inline std::size_t below(Random& random, std::size_t limit) {
  return limit == 0 ? 0 : static_cast<std::size_t>(random() % limit);
}

inline void flipBytes(std::string& bytes, Random& random) {
  for (std::size_t i = 1 + below(random, 8); i-- > 0 && !bytes.empty();)
    bytes[below(random, bytes.size())] = static_cast<char>(random());
}
inline void flipBit(std::string& bytes, Random& random) {
  if (!bytes.empty()) bytes[below(random, bytes.size())] ^= static_cast<char>(1u << below(random, 8));
}
inline void truncate(std::string& bytes, Random& random) { bytes.resize(below(random, bytes.size())); }
inline void swapChunks(std::string& bytes, Random& random) {
  const std::size_t size = std::min<std::size_t>(1 + below(random, 64), bytes.size() / 2);
  if (size == 0) return;
  const std::size_t a = below(random, bytes.size() - size), b = below(random, bytes.size() - size);
  for (std::size_t i = 0; i < size; ++i) std::swap(bytes[a + i], bytes[b + i]);
}
inline void repeatChunk(std::string& bytes, Random& random) {
  const std::size_t begin = below(random, bytes.size()),
                    size = std::min<std::size_t>(1 + below(random, 256), bytes.size() - begin);
  bytes.insert(below(random, bytes.size()), bytes.substr(begin, size));
}
inline void removeChunk(std::string& bytes, Random& random) {
  bytes.erase(below(random, bytes.size()), 1 + below(random, 64));
}
// Small numbers are mostly tags, lengths, extents, types and versions.
inline void editNumber(std::string& bytes, Random& random) {
  for (int tries = 0; tries < 64 && !bytes.empty(); ++tries) {
    char& byte = bytes[below(random, bytes.size())];
    if (static_cast<unsigned char>(byte) > 0x40) continue;
    byte = static_cast<char>(byte + static_cast<char>(below(random, 5)) - 2);
    return;
  }
}
inline void hugeNumber(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  const std::string huge = random() % 2 ? std::string("\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
                                        : std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  bytes.replace(at, std::min<std::size_t>(1, bytes.size() - at), huge);
}

inline constexpr void (*kDamages[])(std::string&, Random&) = {flipBytes,   flipBit,     truncate,   swapChunks,
                                                              repeatChunk, removeChunk, editNumber, hugeNumber};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string damaged(std::string bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = 1 + below(random, 3); i-- > 0;) kDamages[below(random, std::size(kDamages))](bytes, random);
  return bytes;
}

}  // namespace stepscope::testing
