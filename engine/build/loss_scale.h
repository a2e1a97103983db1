// The factor of the loss's gradient, for types whose small numbers vanish: gradients are computed times the scale, and
// divided by it where they are used.
//
// An update whose gradients are not finite is skipped. A dynamic scale shrinks then (times backoff), and grows (times
// growth) after `window` updates without one. Source: PyTorch's torch.amp.GradScaler, with its numbers as defaults; a number
// given by the user stays, and such an update is skipped all the same. The first dynamic scale is found with the first
// batch, so that no update is lost on the way to it, as it is in PyTorch; option loss-scale.init gives PyTorch's way.
#pragma once

#include "engine/build/options.h"
#include "engine/state/state.h"

namespace stepscope {

bool scalesLoss(const TrainOptions& options);
// Whether the first batch decides about the factor of the coming step.
bool findsLossScale(const TrainOptions& options, const LossScale& now);
// What the coming step multiplies by.
double lossScaleFactor(const TrainOptions& options, const LossScale& now);
// Behind an update that was done (`finite`) or skipped. A dynamic factor stays between 2^-24 and 2^100.
LossScale lossScaleAfter(const TrainOptions& options, const LossScale& now, bool finite);

}  // namespace stepscope
