#include "engine/lab/trial_parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/lab/tensor_distance.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

// A gradient whose norm is a smaller share of that of all is rounding: that of a key's bias in attention is zero in theory.
constexpr double kNoise = 1e-5;

bool sameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// The distance as a share of the tensor's norm, or of `floor` where the norm is smaller.
double errorAbove(const TensorDistance& distance, double floor) {
  if (distance.notFinite > 0 || distance.difference == 0 || floor <= 0) return distance.error();
  return std::sqrt(distance.difference) / std::max(std::sqrt(distance.expected), floor);
}

// `a` divided by `factorOfA`, and so on.
TensorDistance distanceOf(const Tensor& a, double factorOfA, const Tensor& b, double factorOfB) {
  TensorDistance distance;
  if (a.elements() != b.elements()) {
    distance.notFinite = 1;
    return distance;
  }
  if (a.dtype() == DType::kF32 && b.dtype() == DType::kF32 && factorOfA == 1 && factorOfB == 1) {
    const auto x = a.as<const float>(), y = b.as<const float>();
    for (std::size_t k = 0; k < x.size(); ++k) distance.add(x[k], y[k]);
    return distance;
  }
  for (std::int64_t k = 0; k < a.elements(); ++k)
    distance.add(elementAsDouble(a.view(), k) / factorOfA, elementAsDouble(b.view(), k) / factorOfB);
  return distance;
}

}  // namespace

Status lookAt(TrialLane& lane, const TrialLane::EachGradient& gradientIsMade) {
  const auto after = [&](int i) { return lane.gradientsAfter(i, gradientIsMade); };
  SS_ASSIGN(lane.lastNs, lane.step(lane.batches().front(), after));
  return {};
}

Status TrialParity::keep(TrialLane& base) {
  SS_TRY(lookAt(base, [&](const std::string& name, const Tensor& gradient) -> Status {
    const double factor = base.gradientFactor();
    squares_ += distanceOf(gradient, factor, gradient, factor).expected;
    gradients_[name] = gradient.clone();
    return {};
  }));
  loss_ = base.loss();
  factor_ = base.gradientFactor();
  for (const ValueId id : base.symbolic().trained) {
    const std::string& name = base.symbolic().graph.value(id).name;
    parameters_[name] = base.state().read(name).clone();
  }
  return {};
}

void TrialParity::compareGradient(const std::string& name, const Tensor& found, double factor, snapshot::TrialParity& parity,
                                  bool& bits) const {
  const Tensor& expected = gradients_.at(name);
  if (factor == factor_ && sameBits(found, expected)) return;
  bits = bits && factor != factor_;
  const TensorDistance distance = distanceOf(found, factor, expected, factor_);
  bits = bits && distance.largest == 0;
  parity.set_gradient(std::max(parity.gradient(), distance.largest));
  const double error = errorAbove(distance, kNoise * std::sqrt(squares_));
  if (!(error <= parity.gradient_relative())) {
    parity.set_gradient_relative(error);
    parity.set_worst(toUtf8(name));
  }
  // NaN is the worst. Directions of noise say nothing.
  const bool noise = distance.notFinite == 0 && distance.expected <= kNoise * kNoise * squares_;
  if (!noise && !(distance.cosine() >= parity.cosine())) parity.set_cosine(distance.cosine());
}

void TrialParity::compareParameters(const TrialLane& other, snapshot::TrialParity& parity, bool& bits) const {
  for (const auto& [name, expected] : parameters_) {
    if (!other.state().contains(name)) continue;
    const Tensor found = other.state().read(name);
    if (sameBits(found, expected)) continue;
    bits = false;
    const TensorDistance distance = distanceOf(found, 1, expected, 1);
    if (distance.error() > parity.parameter_relative() && parity.gradient_relative() == 0) parity.set_worst(toUtf8(name));
    parity.set_parameter_relative(std::max(parity.parameter_relative(), distance.error()));
    parity.set_parameter(std::max(parity.parameter(), distance.largest));
  }
}

Status TrialParity::compare(TrialLane& other, snapshot::TrialParity& parity) const {
  parity.set_compared(true);
  parity.set_cosine(1);
  bool bits = true;
  std::size_t gradients = 0;
  const double factor = other.gradientFactor();
  SS_TRY(lookAt(other, [&](const std::string& name, const Tensor& gradient) -> Status {
    if (!gradients_.contains(name)) return {};
    ++gradients;
    compareGradient(name, gradient, factor, parity, bits);
    return {};
  }));
  const double loss = other.loss();
  parity.set_loss(numberDistance(loss, loss_));
  parity.set_loss_relative(relativeDistance(loss, loss_));
  bits = bits && std::memcmp(&loss, &loss_, sizeof loss) == 0;
  compareParameters(other, parity, bits);
  if (gradients < gradients_.size())
    parity.set_unavailable(fmt::format("{} of {} gradients are not computed as values of their own",
                                       gradients_.size() - gradients, gradients_.size()));
  parity.set_bits(bits);
  return {};
}

}  // namespace stepscope
