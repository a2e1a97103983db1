#include "kernels/shared_dims.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace stepscope {
namespace {

std::size_t placeOf(const Dims& dims, std::size_t places) {
  std::uint64_t hash = dims.size();
  for (const std::int64_t dim : dims) hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(dim);
  return (hash ^ (hash >> 32)) % places;
}

}  // namespace

SharedDims::SharedDims(Dims dims) {
  if (dims.empty()) return;
  thread_local std::array<CopyOnWrite<Dims>, 64> lately;
  CopyOnWrite<Dims>& known = lately[placeOf(dims, lately.size())];
  if (*known != dims) known = CopyOnWrite(std::move(dims));
  held_ = known;
}

}  // namespace stepscope
