// What a device moves (DeviceRanks): put on its streams when the ranks have met, and watched from then on.
#include <fmt/format.h>

#include "engine/comm/communicator.h"

namespace stepscope {

void Communicator::moveBy(std::unique_ptr<DeviceRanks> ranks) {
  watch_ = std::make_unique<DeviceWatch>(std::move(ranks), *transport_, giveUpAt_, timeoutNs_);
}

Status Communicator::deviceEnded() {
  if (!watch_) return {};
  Status ended = watch_->ended(&culprit_);
  if (error_) return tl::make_unexpected(*error_);
  return ended ? Status() : failed(ended.error());
}

Status Communicator::putOnDevice(std::string_view op, std::span<const TensorView> whole, CollectiveEnds ends,
                                 const std::function<Status(DeviceRanks&)>& put) {
  if (!watch_) return invalid(fmt::format("{}: memory of a device; expected that a device moves it", describe(now_)));
  watch_->begins(describe(now_));
  if (Status done = put(watch_->ranks()); !done) {
    if (Status ended = deviceEnded(); !ended) return ended;  // it was given up for another reason
    return failed({done.error().code, fmt::format("{}: {}", describe(now_), done.error().message)});
  }
  std::vector<std::int64_t> elements;
  for (const TensorView& tensor : whole) elements.push_back(tensor.elements());
  if (!whole.empty()) newest_.sentBytes = collectiveSentBytes(op, elements, whole[0].dtype, rank(), size(), ends);
  count();
  return {};
}

}  // namespace stepscope
