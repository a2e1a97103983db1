#include "engine/build/loss_scale.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace stepscope {
namespace {

constexpr double kFirstFactor = 65536;  // GradScaler's

std::optional<double> fixedFactor(const TrainOptions& options) {
  double factor = 0;
  const char* end = options.lossScale.data() + options.lossScale.size();
  const auto [rest, error] = std::from_chars(options.lossScale.data(), end, factor);
  return error == std::errc() && rest == end ? std::optional(factor) : std::nullopt;
}

}  // namespace

bool scalesLoss(const TrainOptions& options) {
  return options.lossScale == "auto" ? options.precision == "fp16" : options.lossScale != "off";
}

bool findsLossScale(const TrainOptions& options, const LossScale& now) {
  return scalesLoss(options) && !fixedFactor(options) && options.lossScaleInit == 0 && now.factor == 0;
}

double lossScaleFactor(const TrainOptions& options, const LossScale& now) {
  if (!scalesLoss(options)) return 1;
  if (const auto fixed = fixedFactor(options)) return *fixed;
  return now.factor > 0 ? now.factor : options.lossScaleInit > 0 ? options.lossScaleInit : kFirstFactor;
}

LossScale lossScaleAfter(const TrainOptions& options, const LossScale& now, bool finite) {
  if (!scalesLoss(options) || fixedFactor(options)) return now;
  const double factor = lossScaleFactor(options, now);
  const double least = std::ldexp(1.0, -24), most = std::ldexp(1.0, 100);
  if (!finite) return {std::max(least, factor * options.lossScaleBackoff), 0};
  if (now.cleanUpdates + 1 < options.lossScaleWindow) return {factor, now.cleanUpdates + 1};
  return {std::min(most, factor * options.lossScaleGrowth), 0};
}

}  // namespace stepscope
