#include "engine/build/rows_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace stepscope {
namespace {

// Only the last layers and the loss are spared by labels; tokens spare every layer.
constexpr std::array<std::pair<std::string_view, RowsLimits>, 2> kLimits{
    {{"labels", {"sparse_labels", 0.75, 0.85}}, {"tokens", {"eliminate_padding", 0.85, 0.92}}}};

bool isOn(const RowsLimits& limits, const TrainOptions& options) {
  const auto on = options.passes.find(std::string(limits.pass));
  return on != options.passes.end() && on->second;
}

}  // namespace

std::optional<RowsLimits> rowsLimitsOf(std::string_view kind) {
  const auto found = std::ranges::find(kLimits, kind, &std::pair<std::string_view, RowsLimits>::first);
  return found == kLimits.end() ? std::nullopt : std::optional(found->second);
}

RowsChoices chooseRows(std::span<const snapshot::InputDensity> batch, const TrainOptions& options,
                       const RowsChoices& before) {
  RowsChoices choices;
  for (const snapshot::InputDensity& density : batch) {
    const auto limits = rowsLimitsOf(density.kind());
    if (!limits || density.total() == 0 || !isOn(*limits, options)) continue;
    const double share = static_cast<double>(density.valid()) / static_cast<double>(density.total());
    const auto last = before.find(density.input());
    const bool alone = share <= limits->enter || (share <= limits->leave && last != before.end() && last->second.alone);
    std::string reason = fmt::format("{:.1f} % of the {} of '{}' count; ", 100 * share, density.kind(), density.input());
    if (share <= limits->enter)
      reason += fmt::format("at most {:.0f} %: they are computed alone", 100 * limits->enter);
    else if (share > limits->leave)
      reason += fmt::format("above {:.0f} %: all are computed", 100 * limits->leave);
    else
      reason += fmt::format("between {:.0f} and {:.0f} %: {}", 100 * limits->enter, 100 * limits->leave,
                            alone ? "they stay computed alone" : "all are computed, as before");
    choices[density.input()] = {alone, std::move(reason)};
  }
  return choices;
}

bool choosesRows(const TrainOptions& options) {
  return std::ranges::any_of(kLimits, [&](const auto& limits) { return isOn(limits.second, options); });
}

bool sameRows(const RowsChoices& a, const RowsChoices& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.first == y.first && x.second.alone == y.second.alone; });
}

}  // namespace stepscope
