#include "engine/step/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr std::int64_t kBlock = 4096;            // elements
constexpr std::int64_t kParallelBlocks = 32;     // fewer are read by one thread
constexpr std::int64_t kFewestBytes = 16 << 10;  // tensors up to this size are always read whole
constexpr std::size_t kFewestBefore = 3;         // steps that a jump is judged by
constexpr double kFarOff = 100;                  // times its own past: a tensor that a jump is blamed on
constexpr std::int64_t kWholeSteps = 2;          // at first: the first is cold and tells nothing of the cost

// Bits without the sign order like the numbers: infinity above all finite ones, NaN above infinity. So a maximum of whole
// numbers, which fills vectors, finds the largest and whether one is not finite.
template <typename T>
struct Bits;
template <>
struct Bits<float> {
  using Whole = std::int32_t;
  static constexpr Whole kRest = 0x7fffffff, kInfinity = 0x7f800000;
};
template <>
struct Bits<double> {
  using Whole = std::int64_t;
  static constexpr Whole kRest = 0x7fffffffffffffff, kInfinity = 0x7ff0000000000000;
};
template <>
struct Bits<Float16> {
  using Whole = std::int16_t;
  static constexpr Whole kRest = 0x7fff, kInfinity = 0x7c00;
};
template <>
struct Bits<BFloat16> {
  using Whole = std::int16_t;
  static constexpr Whole kRest = 0x7fff, kInfinity = 0x7f80;
};

template <typename T>
typename Bits<T>::Whole most(const typename Bits<T>::Whole* x, std::int64_t count) {
  using Whole = typename Bits<T>::Whole;
  Whole largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto rest = static_cast<Whole>(x[i] & Bits<T>::kRest);
    largest = rest > largest ? rest : largest;
  }
  return largest;
}

template <typename T>
void lookAtAll(const void* data, std::int64_t count, std::int64_t parts, std::int64_t part, FlightLook& look) {
  using Whole = typename Bits<T>::Whole;
  const auto* x = static_cast<const Whole*>(data);
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  const std::int64_t mine = blocks > part ? (blocks - part + parts - 1) / parts : 0;
  const auto sizeOf = [&](std::int64_t b) { return std::min(kBlock, count - b * kBlock); };
  Whole largest = 0;
  std::int64_t looked = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(+ : looked) if (mine > kParallelBlocks)
  for (std::int64_t k = 0; k < mine; ++k) {
    const std::int64_t b = part + k * parts;
    const Whole found = most<T>(x + b * kBlock, sizeOf(b));
    largest = found > largest ? found : largest;
    looked += sizeOf(b);
  }
  look.looked = looked;
  if (largest >= Bits<T>::kInfinity) {  // rare: counted in a pass of its own
    largest = 0;
    for (std::int64_t k = 0; k < mine; ++k) {
      const std::int64_t b = part + k * parts;
      for (std::int64_t i = b * kBlock; i < b * kBlock + sizeOf(b); ++i) {
        const auto rest = static_cast<Whole>(x[i] & Bits<T>::kRest);
        look.nan += rest > Bits<T>::kInfinity;
        look.inf += rest == Bits<T>::kInfinity;
        if (rest < Bits<T>::kInfinity) largest = std::max(largest, rest);
      }
    }
  }
  look.largest = static_cast<double>(std::bit_cast<T>(largest));
}

// The largest that was seen before the newest look.
double largestBefore(const FlightTrack& track) {
  double largest = 0;
  for (std::size_t i = 0; i + 1 < track.looks.size(); ++i) largest = std::max(largest, track.looks[i].largest);
  return largest;
}

}  // namespace

FlightLook lookAt(const TensorView& view, std::int64_t parts, std::int64_t part) {
  FlightLook look;
  if (!view.present() || !view.data) return look;
  look.of = view.elements();
  dispatchFloat(view.dtype, [&](auto tag) { lookAtAll<decltype(tag)>(view.data, view.elements(), parts, part, look); });
  return look;
}

void FlightRecorder::forget() {
  for (FlightTrack& track : tracks_) track.looks.clear();
  jumped_ = false;
}

FlightPlan FlightRecorder::planFor(const Executor& executor, const NotePlan& notes) {
  FlightPlan plan;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t i = 0; i < tracks_.size(); ++i) known[{tracks_[i].kind, tracks_[i].of}] = i;
  const auto add = [&](int instruction, const NotePlan::Place& place) {
    const TensorView view = executor.stored(place.value);
    if (!view.present() || !isFloating(view.dtype)) return;
    const auto [at, added] = known.try_emplace({place.kind, place.of}, tracks_.size());
    if (added) tracks_.push_back({place.kind, place.of, {}});
    plan.places.push_back({instruction, place.value, at->second, static_cast<std::int64_t>(view.bytes())});
    plan.bytes += plan.places.back().bytes;
  };
  for (const NotePlan::Place& place : notes.parameters) add(-1, place);
  for (const auto& [instruction, places] : notes.after)
    for (const NotePlan::Place& place : places) add(instruction, place);
  return plan;
}

void FlightRecorder::begin(const Executor& executor, const FlightPlan* plan, std::int64_t step) {
  jumped_ = false;
  next_ = 0;
  ns_ = read_ = 0;
  step_ = step;
  executor_ = &executor;
  plan_ = on_ && plan && credit_ >= 0 ? plan : nullptr;
  if (plan_) after(-1, true);
}

void FlightRecorder::after(int instruction, bool computed) {
  const std::vector<FlightPlan::Place>& places = plan_->places;
  while (next_ < places.size() && places[next_].instruction < instruction) ++next_;
  if (next_ == places.size() || places[next_].instruction > instruction) return;
  const std::int64_t begin = monotonicNs();
  for (; next_ < places.size() && places[next_].instruction == instruction; ++next_)
    if (computed) look(places[next_]);
  ns_ += monotonicNs() - begin;
}

void FlightRecorder::look(const FlightPlan::Place& place) {
  const TensorView view = executor_->stored(place.value);
  std::int64_t parts = 1;
  if (wholeBytes_ >= 0 && place.bytes > wholeBytes_) parts = (place.bytes + wholeBytes_ - 1) / wholeBytes_;
  FlightTrack& track = tracks_[place.track];
  FlightLook found = lookAt(view, parts, step_ % parts);
  found.step = step_;
  read_ += found.of > 0 ? place.bytes * found.looked / found.of : 0;
  if (!track.looks.empty() && track.looks.back().step == step_)  // the step was taken back, and runs again
    track.looks.back() = found;
  else
    track.looks.push_back(found);
  if (track.looks.size() > kKept) track.looks.pop_front();
}

// So many bytes of the largest tensors are read that the looks take their share of the step.
void FlightRecorder::share(const FlightPlan& plan) {
  std::vector<std::int64_t> sizes;
  for (const FlightPlan::Place& place : plan.places) sizes.push_back(place.bytes);
  std::sort(sizes.begin(), sizes.end());
  const double speed =
      static_cast<double>(std::max<std::int64_t>(read_, 1)) / static_cast<double>(std::max<std::int64_t>(ns_, 1));
  const double allowed = std::max(0.0, credit_) * speed;
  double whole = 0;
  wholeBytes_ = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<double>(sizes[i]), left = static_cast<double>(sizes.size() - i);
    if (whole + size * left > allowed) {
      wholeBytes_ = std::max(kFewestBytes, static_cast<std::int64_t>((allowed - whole) / left));
      break;
    }
    whole += size;
  }
}

void FlightRecorder::finish(std::int64_t ns) {
  if (!on_) return;
  const double taken =
      plan_ ? static_cast<double>(ns_) + kListeningNs * static_cast<double>(executor_->plan().instructions.size()) : 0;
  spent_ = static_cast<std::int64_t>(taken);
  const double due = kShare * static_cast<double>(ns);
  if (const bool first = steps_++ < kWholeSteps; first && plan_) {
    credit_ = due;
    share(*plan_);
    credit_ = 0;
  } else {
    // What one step took above its share the next ones save; what it left is not saved up for long.
    credit_ = std::min(credit_ + due - taken, 2 * due);
    if (plan_) {
      const double owed = credit_;
      credit_ = due + std::min(0.0, owed);
      share(*plan_);
      credit_ = owed;
    }
  }
  findJump();
  plan_ = nullptr;
}

void FlightRecorder::drop() { plan_ = nullptr; }

const FlightTrack* FlightRecorder::badGradient() const {
  for (const FlightTrack& track : tracks_)
    if (track.kind == "gradient" && !track.looks.empty() && track.looks.back().step == step_ && !track.looks.back().finite())
      return &track;
  return nullptr;
}

void FlightRecorder::findJump() {
  jumped_ = false;
  double now = 0, before = 0;
  std::size_t steps = 0;
  for (const FlightTrack& track : tracks_) {
    if (track.kind != "gradient" || track.looks.empty() || track.looks.back().step != step_) continue;
    now = std::max(now, track.looks.back().largest);
    before = std::max(before, largestBefore(track));
    steps = std::max(steps, track.looks.size() - 1);
  }
  if (steps < kFewestBefore || before <= 0 || now <= kJump * before) return;
  jumped_ = true;
  jump_ = {"gradient", "", now, before, now, before};
  for (const FlightPlan::Place& place : plan_ ? plan_->places : std::vector<FlightPlan::Place>()) {
    const FlightTrack& track = tracks_[place.track];
    if (track.looks.empty() || track.looks.back().step != step_) continue;
    const double own = largestBefore(track);
    if (own <= 0 || track.looks.back().largest <= kFarOff * own) continue;
    jump_.kind = track.kind;
    jump_.of = track.of;
    jump_.now = track.looks.back().largest;
    jump_.before = own;
    return;
  }
}

double FlightRecorder::largestParameter(std::int64_t step) const {
  double largest = -1;
  for (const FlightTrack& track : tracks_) {
    if (track.kind != "parameter" || track.looks.empty() || track.looks.back().step != step) continue;
    const FlightLook& look = track.looks.back();
    largest = std::max(largest, look.finite() ? look.largest : std::numeric_limits<double>::infinity());
  }
  return largest;
}

std::vector<std::string> FlightRecorder::trail(std::size_t most) const {
  struct Largest {
    const FlightTrack* track = nullptr;
    const FlightLook* look = nullptr;
    std::int64_t notFinite = 0;
  };
  std::map<std::int64_t, std::map<std::string, Largest>> steps;
  for (const FlightTrack& track : tracks_)
    for (const FlightLook& look : track.looks) {
      Largest& largest = steps[look.step][track.kind];
      largest.notFinite += look.finite() ? 0 : 1;
      if (!largest.look || look.largest > largest.look->largest) {
        largest.track = &track;
        largest.look = &look;
      }
    }
  std::vector<std::string> lines;
  for (auto step = steps.rbegin(); step != steps.rend() && lines.size() < most; ++step) {
    std::string line = fmt::format("step {}: ", step->first);
    for (const char* kind : {"parameter", "output", "gradient"}) {
      const auto found = step->second.find(kind);
      if (found == step->second.end()) continue;
      const Largest& largest = found->second;
      line += fmt::format("{}largest {} {:.4g} in '{}'", line.ends_with(": ") ? "" : ", ", kind, largest.look->largest,
                          toUtf8(largest.track->of));
      if (largest.notFinite > 0) line += fmt::format(" ({} hold NaN or Inf)", largest.notFinite);
    }
    lines.push_back(std::move(line));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace stepscope
