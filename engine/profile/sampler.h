// Decides in which micro steps something is recorded that costs time.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/status.h"

namespace stepscope {

// The setting of such an option: never, in every N-th micro step, or as often as a share of the time allows.
struct SampleRate {
  enum class Kind { kOff, kShare, kEvery } kind = Kind::kShare;
  std::int64_t every = 1;
};
// "off", "auto" or a whole number from 1. The error names the option.
Result<SampleRate> parseSampleRate(std::string_view option, std::string_view text);

// With `auto`, a step is taken as soon as the steps since the last one lasted so long that its cost is no more than `share`
// of them, so recording costs no more than that whatever the model. The first two steps are always taken: the first is cold
// and tells nothing of the cost. A long run is thinned out: after every kDense samples they lie one micro step further
// apart, so their number grows with the logarithm of the steps.
class Sampler {
 public:
  static constexpr std::int64_t kDense = 200;

  Sampler() = default;
  Sampler(SampleRate rate, double share) : rate_(rate), share_(share) {}

  bool wants(std::int64_t step) const;
  // A micro step ended that lasted `ns`, of which recording took `cost`; `taken`: in this one.
  void ran(bool taken, std::int64_t ns, std::int64_t cost);

 private:
  SampleRate rate_;
  double share_ = 0.01;
  std::int64_t samples_ = 0, stepsSince_ = 0;
  double nsSince_ = 0, cost_ = 0;
};

}  // namespace stepscope
