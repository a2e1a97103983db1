#include "engine/comm/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/rank_part.h"

namespace stepscope {

Status Ranks::copyOver(const CollectivePlace& place, const TensorView& in, const TensorView& out) {
  if (out.data == in.data || out.bytes() == 0) return {};
  const auto bytes = static_cast<std::int64_t>(out.bytes());
  if (place.onDevice()) return communicator_->deviceRanks()->device().copy(out.data, in.data, bytes, place.stream);
  std::memcpy(out.data, in.data, out.bytes());
  return {};
}

Status Ranks::zero(const CollectivePlace& place, const TensorView& out) {
  if (out.bytes() == 0) return {};
  const auto bytes = static_cast<std::int64_t>(out.bytes());
  if (place.onDevice()) return communicator_->deviceRanks()->device().fill(out.data, 0, bytes, place.stream);
  std::memset(out.data, 0, out.bytes());
  return {};
}

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
    for (std::size_t i = 0; i < out.size(); ++i) SS_TRY(copyOver(place, before->second[i].view(), out[i]));
    return {};
  }
  const std::int64_t begin = rankClockNs();
  SS_TRY(exchange());
  const CollectiveTimes& times = communicator_->newest();
  exchanges_.push_back({place.node, times, begin, times.waitNs + times.moveNs});
  done_[place.node].clear();
  return keeps_ || place.askedAgain ? keep(place, out) : Status();
}

Status Ranks::keep(const CollectivePlace& place, std::span<const TensorView> out) {
  std::vector<Tensor>& kept = done_[place.node];
  kept.clear();
  for (const TensorView& result : out) {
    Tensor copy(result.dtype, place.onDevice() ? Dims{0} : result.dims.get());
    if (place.onDevice()) {
      SS_ASSIGN(copy, makeTensor(communicator_->deviceRanks()->device(), result.dtype, result.dims));
    }
    SS_TRY(copyOver(place, result, copy.view()));
    kept.push_back(std::move(copy));
  }
  return {};
}

RankThread* Ranks::thread() {
  if (!communicator_->anyThread()) return nullptr;
  if (!thread_) thread_ = std::make_unique<RankThread>();
  return thread_.get();
}

Status Ranks::allReduce(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                        bool average) {
  return once(place, out, [&] { return communicator_->allReduce(place, in, out, average); });
}

Status Ranks::reduceScatter(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                            bool average) {
  return once(place, out, [&] { return communicator_->reduceScatter(place, in, out, average); });
}

Status Ranks::allGather(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out) {
  return once(place, out, [&] { return communicator_->allGather(place, in, out); });
}

Status Ranks::broadcast(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root) {
  return once(place, std::span(&out, 1), [&]() -> Status {
    if (rank() == root) SS_TRY(copyOver(place, in, out));
    return communicator_->broadcast(place, std::span(&out, 1), root);
  });
}

Status Ranks::reduce(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root) {
  return once(place, std::span(&out, 1), [&]() -> Status {
    SS_TRY(communicator_->reduce(place, in, out, root));
    return rank() != root ? zero(place, out) : Status();
  });
}

Status Ranks::allToAll(const CollectivePlace& place, const TensorView& in, const TensorView& out) {
  return once(place, std::span(&out, 1), [&] { return communicator_->allToAll(place, in, out); });
}

Status Ranks::message(const CollectivePlace& place, const TensorView& in, const TensorView& out, int from, int to) {
  if (from == to || (rank() != from && rank() != to)) {
    return rank() == to ? copyOver(place, in, out) : zero(place, out);
  }
  return once(place, std::span(&out, 1), [&]() -> Status {
    if (rank() == to) return communicator_->receive(place, out, from);
    SS_TRY(communicator_->send(place, in, to));
    return zero(place, out);
  });
}

Status Ranks::gatherToFirst(const CollectivePlace& place, const TensorView& part, const TensorView& whole) {
  const auto size = static_cast<std::int64_t>(dtypeSize(whole.dtype));
  const std::int64_t elements = whole.elements(), length = partLength(elements, this->size());
  const auto slice = [&](const TensorView& of, std::int64_t from, std::int64_t count) {
    return TensorView{static_cast<std::byte*>(of.data) + from * size, of.dtype, {count}};
  };
  for (int r = 0; r < this->size(); ++r) {
    const std::int64_t count = partFilled(elements, r, this->size());
    if (count == 0) continue;
    if (r == 0 && rank() == 0)
      std::memcpy(whole.data, part.data, static_cast<std::size_t>(count * size));
    else if (rank() == 0)
      SS_TRY(communicator_->receive(place, slice(whole, r * length, count), r));
    else if (rank() == r)
      SS_TRY(communicator_->send(place, slice(part, 0, count), 0));
  }
  return {};
}

Status Ranks::gather(const CollectivePlace& place, std::span<const double> mine, std::vector<double>& parts) {
  const auto count = static_cast<std::int64_t>(mine.size());
  std::vector<double> own(mine.begin(), mine.end());
  parts.resize(mine.size() * static_cast<std::size_t>(size()));
  const TensorView in{own.data(), DType::kF64, {count}}, out{parts.data(), DType::kF64, {count * size()}};
  return once(place, std::span(&out, 1),
              [&] { return communicator_->allGather(place, std::span(&in, 1), std::span(&out, 1)); });
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

std::vector<Ranks::Exchanged> Ranks::takeExchanges() {
  for (const auto& [node, exposedNs] : std::exchange(beside_, {}))
    for (Exchanged& exchanged : exchanges_)
      if (exchanged.node == node) exchanged.exposedNs = exposedNs;
  return std::exchange(exchanges_, {});
}

}  // namespace stepscope
