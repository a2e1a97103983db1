// What every rank tells every other one when it comes to a collective, before any data: which one it is. Ranks that are at
// different places find that out here instead of waiting for each other, or adding up what does not belong together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

enum class CollectiveKind : std::uint32_t {
  kAllReduce = 1,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSend,     // of the pair, for the one who sends
  kReceive,  // and who receives
  kEnded,    // the rank gives up: `text` is its error
  kReduce,
};
std::string_view collectiveName(CollectiveKind kind);

// Sent as it is: ranks are of one build (the first word is checked) on machines of one byte order.
struct CollectiveHeader {
  static constexpr std::uint64_t kMagic = 0x31303173'6b6e6172;  // "ranks101"
  std::uint64_t magic = kMagic;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int32_t root = -1;     // who sends to all, or has the sum; of a pair, who receives
  std::int32_t culprit = -1;  // kEnded: the rank that failed first, as far as this one knows
  std::int32_t average = 0;
  std::int64_t number = 0;  // how many collectives came before
  std::int64_t step = 0;    // micro step
  std::uint64_t shape = 0;  // types and extents, as one number
  std::int64_t bytes = 0;
  std::array<char, 192> node{};  // ends with zero, cut where it is longer
  std::array<char, 256> text{};  // types and extents for people; kEnded: the error

  void setNode(std::string_view name) { put(node, name); }
  void setText(std::string_view words) { put(text, words); }

 private:
  template <std::size_t N>
  static void put(std::array<char, N>& to, std::string_view words) {
    to.fill(0);
    words.copy(to.data(), N - 1);
  }
};

// "AllReduce 3 'conv.weight' of step 7: float32 [8, 3] (96 bytes)".
std::string describe(const CollectiveHeader& header);

// Error kInvalidArgument, naming what both ranks are at, unless the two are of one collective.
Status checkSameCollective(const CollectiveHeader& mine, int myRank, const CollectiveHeader& theirs, int theirRank);

// One number for types and extents, and the same as text.
std::uint64_t shapeNumber(std::span<const TensorView> tensors);
std::string shapeText(std::span<const TensorView> tensors);

}  // namespace stepscope
