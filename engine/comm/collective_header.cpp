#include "engine/comm/collective_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace stepscope {

std::string_view collectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return "AllReduce";
    case CollectiveKind::kAllGather: return "AllGather";
    case CollectiveKind::kReduceScatter: return "ReduceScatter";
    case CollectiveKind::kBroadcast: return "Broadcast";
    case CollectiveKind::kAllToAll: return "AllToAll";
    case CollectiveKind::kSend: return "Send";
    case CollectiveKind::kReceive: return "Recv";
    case CollectiveKind::kEnded: return "end";
    case CollectiveKind::kReduce: return "Reduce";
  }
  return "unknown";
}

std::string describe(const CollectiveHeader& header) {
  return fmt::format("{} {} '{}' of step {}: {}", collectiveName(header.kind), header.number, header.node.data(),
                     header.step, header.text.data());
}

Status checkSameCollective(const CollectiveHeader& mine, int myRank, const CollectiveHeader& theirs, int theirRank) {
  if (theirs.magic != CollectiveHeader::kMagic)
    return invalid(
        fmt::format("rank {}: what it sends is no collective; expected a program of the same build on a machine "
                    "of the same byte order",
                    theirRank));
  const auto same = [](const CollectiveHeader& a, const CollectiveHeader& b) {
    return a.kind == b.kind && a.root == b.root && a.average == b.average && a.number == b.number && a.step == b.step &&
           a.shape == b.shape && a.bytes == b.bytes && a.node == b.node;
  };
  CollectiveHeader partner = mine;  // the two sides of a pair have two names
  if (mine.kind == CollectiveKind::kReceive) partner.kind = CollectiveKind::kSend;
  if (mine.kind == CollectiveKind::kSend) partner.kind = CollectiveKind::kReceive;
  if (same(partner, theirs)) return {};
  return invalid(fmt::format("ranks are at different collectives: rank {} at {}; rank {} at {}; expected the same on all",
                             std::min(myRank, theirRank), describe(myRank < theirRank ? mine : theirs),
                             std::max(myRank, theirRank), describe(myRank < theirRank ? theirs : mine)));
}

std::uint64_t shapeNumber(std::span<const TensorView> tensors) {
  std::uint64_t number = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) number = (number ^ ((word >> shift) & 0xff)) * 0x100000001b3;
  };
  for (const TensorView& tensor : tensors) {
    add(static_cast<std::uint64_t>(tensor.dtype));
    add(tensor.dims.size());
    for (const std::int64_t extent : tensor.dims) add(static_cast<std::uint64_t>(extent));
  }
  return number;
}

std::string shapeText(std::span<const TensorView> tensors) {
  constexpr std::size_t kShown = 4;
  std::string text;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes += tensors[i].bytes();
    if (i < kShown)
      text += fmt::format("{}{} {}", i ? ", " : "", dtypeName(tensors[i].dtype), dimsText(tensors[i].dims));
    else if (i == kShown)
      text += fmt::format(" and {} more", tensors.size() - kShown);
  }
  return fmt::format("{} ({} bytes)", text, bytes);
}

}  // namespace stepscope
