#include "engine/exec/device_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepscope {

std::int64_t ClockFit::host(std::int64_t device) const {
  return host0 + static_cast<std::int64_t>(std::llround(rate * static_cast<double>(device - device0)));
}

ClockFit fitClocks(std::span<const ClockPair> pairs) {
  ClockFit fit;
  if (pairs.empty()) return fit;
  // Around the first pair: the readings themselves have more digits than a double.
  fit.device0 = pairs[0].device;
  fit.host0 = pairs[0].host;
  double meanDevice = 0, meanHost = 0;
  for (const ClockPair& pair : pairs) {
    meanDevice += static_cast<double>(pair.device - fit.device0);
    meanHost += static_cast<double>(pair.host - fit.host0);
  }
  const auto count = static_cast<double>(pairs.size());
  meanDevice /= count;
  meanHost /= count;
  double together = 0, alone = 0;
  for (const ClockPair& pair : pairs) {
    const double x = static_cast<double>(pair.device - fit.device0) - meanDevice;
    together += x * (static_cast<double>(pair.host - fit.host0) - meanHost);
    alone += x * x;
  }
  if (alone > 0) fit.rate = together / alone;
  fit.host0 += std::llround(meanHost - fit.rate * meanDevice);
  for (const ClockPair& pair : pairs)
    fit.residual = std::max(fit.residual, std::abs(static_cast<double>(fit.host(pair.device) - pair.host)));
  return fit;
}

void placeOnHostClock(Activity& activity, std::span<Span> spans) {
  const ClockFit clock = fitClocks(activity.clocks);
  std::vector<bool> placed(spans.size());
  for (ActivityRecord& record : activity.records) {
    record.begin = clock.host(record.begin);
    record.end = clock.host(record.end);
    if (std::exchange(record.callsByDevice, false) && record.called != 0) {
      record.called = clock.host(record.called);
      record.returned = clock.host(record.returned);
    }
    if (!isWork(record.kind)) continue;
    const auto instruction = static_cast<std::int32_t>(record.id) - 1;
    const auto found = std::ranges::lower_bound(spans, instruction, {}, &Span::instruction);
    if (record.id == 0 || found == spans.end() || found->instruction != instruction) continue;
    const auto at = static_cast<std::size_t>(found - spans.begin());
    found->begin = placed[at] ? std::min(found->begin, record.begin) : record.begin;
    found->end = placed[at] ? std::max(found->end, record.end) : record.end;
    placed[at] = true;
  }
  std::ranges::stable_sort(activity.records, {}, [](const ActivityRecord& record) {
    return std::pair(record.correlation == 0, record.correlation == 0 ? record.begin : std::int64_t(record.correlation));
  });
}

void append(Activity& to, Activity from) {
  const auto kernels = static_cast<std::int32_t>(to.kernels.size());
  const auto counters = static_cast<std::int32_t>(to.counters.size());
  for (ActivityRecord& record : from.records) {
    if (record.kernel >= 0) record.kernel += kernels;
    if (record.counters >= 0) record.counters += counters;
    to.records.push_back(record);
  }
  to.kernels.insert(to.kernels.end(), from.kernels.begin(), from.kernels.end());
  to.counters.insert(to.counters.end(), from.counters.begin(), from.counters.end());
  to.lost += from.lost;
  to.uncounted += from.uncounted;
  if (to.counted.empty()) to.counted = std::move(from.counted);
}

int rowOf(const Instruction& instruction) {
  return instruction.onHost || instruction.view ? 0 : 1 + static_cast<int>(instruction.stream);
}

}  // namespace stepscope
