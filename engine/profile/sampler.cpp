#include "engine/profile/sampler.h"

#include <fmt/format.h>

#include <charconv>

namespace stepscope {

Result<SampleRate> parseSampleRate(std::string_view option, std::string_view text) {
  if (text == "off") return SampleRate{SampleRate::Kind::kOff, 1};
  if (text == "auto") return SampleRate{SampleRate::Kind::kShare, 1};
  SampleRate rate{SampleRate::Kind::kEvery, 0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate.every);
  if (error != std::errc() || end != text.data() + text.size() || rate.every < 1)
    return invalidOption(option, fmt::format("found '{}'; expected off, auto or a whole number of steps from 1", text));
  return rate;
}

bool Sampler::wants(std::int64_t step) const {
  switch (rate_.kind) {
    case SampleRate::Kind::kOff: return false;
    case SampleRate::Kind::kEvery: return step % rate_.every == 0;
    case SampleRate::Kind::kShare: return samples_ < 2 || (stepsSince_ >= samples_ / kDense && cost_ <= share_ * nsSince_);
  }
  return false;
}

void Sampler::ran(bool taken, std::int64_t ns, std::int64_t cost) {
  ++stepsSince_;
  nsSince_ += static_cast<double>(ns);
  if (!taken) return;
  ++samples_;
  stepsSince_ = 0;
  nsSince_ = static_cast<double>(ns - cost);
  cost_ = static_cast<double>(cost);
}

}  // namespace stepscope
