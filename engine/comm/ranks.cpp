#include "engine/comm/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace stepscope {

template <typename Exchange>
Status Ranks::once(const CollectivePlace& place, std::span<const TensorView> out, Exchange exchange) {
  if (place.step != step_) {
    step_ = place.step;
    done_.clear();
  }
  if (const auto before = done_.find(place.node); before != done_.end()) {
    if (before->second.size() != out.size())
      return fail(
          ErrorCode::kNotFound,
          fmt::format("'{}' of step {}: the ranks have exchanged it, and what came was not kept; expected one look at "
                      "it in each step",
                      place.node, place.step));
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i].bytes() > 0) std::memcpy(out[i].data, before->second[i].data(), out[i].bytes());
    return {};
  }
  SS_TRY(exchange());
  std::vector<Tensor>& kept = done_[place.node];
  if (!keeps_) return {};
  for (const TensorView& result : out) {
    kept.emplace_back(result.dtype, result.dims);
    if (result.bytes() > 0) std::memcpy(kept.back().data(), result.data, result.bytes());
  }
  return {};
}

Status Ranks::allReduce(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                        bool average) {
  return once(place, out, [&] { return communicator_->allReduce(place, in, out, average); });
}

Status Ranks::gather(const CollectivePlace& place, std::span<const double> mine, std::vector<double>& parts) {
  const auto count = static_cast<std::int64_t>(mine.size());
  std::vector<double> own(mine.begin(), mine.end());
  parts.resize(mine.size() * static_cast<std::size_t>(size()));
  const TensorView in{own.data(), DType::kF64, {count}}, out{parts.data(), DType::kF64, {count * size()}};
  return once(place, std::span(&out, 1), [&] { return communicator_->allGather(place, in, out); });
}

Status Ranks::smallest(const std::string& what, std::int64_t step, double& value) {
  std::vector<double> all;
  SS_TRY(gather({what, step}, std::span(&value, 1), all));
  value = *std::min_element(all.begin(), all.end());
  return {};
}

CollectiveTimes Ranks::takeTimes() {
  const CollectiveTimes now = communicator_->total();
  CollectiveTimes since = now;
  since.waitNs -= told_.waitNs;
  since.moveNs -= told_.moveNs;
  since.sentBytes -= told_.sentBytes;
  since.receivedBytes -= told_.receivedBytes;
  since.count -= told_.count;
  told_ = now;
  return since;
}

}  // namespace stepscope
