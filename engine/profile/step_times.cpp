#include "engine/profile/step_times.h"

#include <algorithm>
#include <numeric>

namespace stepscope {

void StepTimes::add(const std::vector<Span>& spans, std::size_t instructions) {
  if (spans.empty() || spans.back().instruction + 1 != static_cast<std::int64_t>(instructions) ||
      spans.front().instruction != 0)
    return;
  // The second step takes the place of the first, then the places are taken in turn.
  const std::size_t place = added_ < 2 ? 0 : static_cast<std::size_t>(added_ - 1) % kKept;
  if (place >= kept_.size()) kept_.emplace_back();
  std::vector<std::int64_t>& step = kept_[place];
  step.assign(instructions, 0);
  for (const Span& span : spans)
    if (span.instruction >= 0 && static_cast<std::size_t>(span.instruction) < instructions)
      step[static_cast<std::size_t>(span.instruction)] = span.end - span.begin;
  ++added_;
}

std::vector<double> StepTimes::medians() const {
  std::vector<double> result;
  if (kept_.empty()) return result;
  for (std::size_t i = 0; i < kept_.front().size(); ++i) {
    std::vector<double> values;
    for (const auto& step : kept_) values.push_back(static_cast<double>(step[i]));
    result.push_back(medianOf(std::move(values)));
  }
  return result;
}

std::vector<double> StepTimes::sums() const {
  std::vector<double> result;
  for (const auto& step : kept_)
    result.push_back(static_cast<double>(std::accumulate(step.begin(), step.end(), std::int64_t{0})));
  return result;
}

double medianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace stepscope
