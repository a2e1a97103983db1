// Collectives of one rank, and its part of a tensor. Where other ranks take part, the executor asks whoever reaches them
// instead: alone, the sum of all is this rank's own, and what the others would send is what was there before.
#include <cstring>

#include "kernels/rank_part.h"
#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

// Where the part of a rank lies in a tensor.
struct PartBytes {
  std::size_t offset = 0, filled = 0;
};

Result<PartBytes> partBytes(const KernelSpec& spec, const TensorView& whole, const TensorView& part) {
  const std::int64_t ranks = spec.attrs.integer("ranks", 0), rank = spec.attrs.integer("rank", -1);
  const std::int64_t elements = whole.elements();
  if (ranks < 1 || rank < 0 || rank >= ranks || part.elements() != partLength(elements, ranks))
    return invalid(spec.op + ": rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", a part of " +
                   std::to_string(part.elements()) + " of " + std::to_string(elements) +
                   " elements; expected a share of them");
  const std::size_t size = dtypeSize(part.dtype);
  const std::int64_t first = std::min(rank * partLength(elements, ranks), elements);
  return PartBytes{static_cast<std::size_t>(first) * size,
                   static_cast<std::size_t>(partFilled(elements, rank, ranks)) * size};
}

Status takePart(const KernelSpec& spec, const TensorView& whole, const TensorView& part) {
  if (whole.dtype == DType::kString || whole.dtype != part.dtype) return wrongType(spec, whole.dtype);
  SS_ASSIGN(const PartBytes where, partBytes(spec, whole, part));
  auto* const to = static_cast<std::byte*>(part.data);
  if (where.filled > 0) std::memcpy(to, static_cast<const std::byte*>(whole.data) + where.offset, where.filled);
  if (part.bytes() > where.filled) std::memset(to + where.filled, 0, part.bytes() - where.filled);
  return {};
}

Status rankPart(const KernelSpec& spec, const KernelCall& call) { return takePart(spec, call.inputs[0], call.outputs[0]); }

Status reduceScatterAlone(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) SS_TRY(takePart(spec, call.inputs[i], call.outputs[i]));
  return {};
}

Status allGatherAlone(const KernelSpec& spec, const KernelCall& call) {
  const bool alone = spec.attrs.has("extents");  // parts without what was there before
  const std::size_t count = alone ? 0 : call.inputs.size() / 2;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const TensorView &part = call.inputs[count + i], &y = call.outputs[i];
    const TensorView before = alone ? TensorView() : call.inputs[i];
    if (y.dtype == DType::kString || y.dtype != part.dtype) return wrongType(spec, y.dtype);
    SS_ASSIGN(const PartBytes where, partBytes(spec, y, part));
    if (y.bytes() > 0 && y.data != before.data) {
      if (before.dtype == y.dtype)
        std::memcpy(y.data, before.data, y.bytes());
      else
        std::memset(y.data, 0, y.bytes());
    }
    if (where.filled > 0) std::memcpy(static_cast<std::byte*>(y.data) + where.offset, part.data, where.filled);
  }
  return {};
}

// What others would send is zeros.
Status allGatherRowsAlone(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.dtype == DType::kString) return wrongType(spec, x.dtype);
  SS_ASSIGN(const PartBytes where, partBytes(spec, y, x));
  if (y.bytes() > 0) std::memset(y.data, 0, y.bytes());
  if (where.filled > 0) std::memcpy(static_cast<std::byte*>(y.data) + where.offset, x.data, where.filled);
  return {};
}

// The sum of one rank, and what it sends to itself.
Status keepsItsOwn(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const TensorView &x = call.inputs[i], &y = call.outputs[i];
    if (x.dtype == DType::kString) return wrongType(spec, x.dtype);
    if (y.bytes() > 0 && y.data != x.data) std::memcpy(y.data, x.data, y.bytes());
  }
  return {};
}

}  // namespace

std::span<const KernelEntry> rankKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"stepscope", "AllGather", reading<1, allGatherAlone>},
      {"stepscope", "AllGatherRows", reading<1, allGatherRowsAlone>},
      {"stepscope", "AllReduce", reading<1, keepsItsOwn>},
      {"stepscope", "AllToAll", reading<1, keepsItsOwn>},
      {"stepscope", "Broadcast", reading<1, keepsItsOwn>},
      {"stepscope", "RankPart", reading<1, rankPart>},
      {"stepscope", "Recv", reading<1, keepsItsOwn>},
      {"stepscope", "Reduce", reading<1, keepsItsOwn>},
      {"stepscope", "ReduceScatter", reading<1, reduceScatterAlone>},
      {"stepscope", "ReduceScatterRows", reading<1, reduceScatterAlone>},
      {"stepscope", "Send", reading<1, keepsItsOwn>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
