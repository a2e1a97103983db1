#include "kernels/cuda_device/cupti_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace stepscope::cuda {
namespace {

constexpr std::size_t kMostRoom = std::size_t{1} << 16;
constexpr double kPercent = 0.01;

// Why counters cannot be had, where `what` answered that.
Status refused(const char* what, CuptiResult result) {
  if (result == kCuptiNoRights || result == kCuptiNoRightsVirtual)
    return unsupported(
        "this user may not read the counters of the GPU (ERR_NVGPUCTRPERM); expected CAP_SYS_ADMIN, or the driver's "
        "option NVreg_RestrictProfilingToAdminUsers=0");
  return unsupported(fmt::format("CUPTI does not count: {} answered error {}", what, result));
}

template <typename Parameters>
Status call(CuptiResult (*function)(Parameters*), const char* what, Parameters& parameters) {
  const CuptiResult result = function(&parameters);
  return result == 0 ? Status() : refused(what, result);
}

}  // namespace

#define SS_CALL(member, parameters) SS_TRY(call(cupti_->member, #member, parameters))

CuptiCounters::~CuptiCounters() {
  Activity nobodys;
  take(nobodys);
  dropHost();
}

void CuptiCounters::dropHost() {
  if (!host_) return;
  CuptiHost drop;
  drop.host = std::exchange(host_, nullptr);
  cupti_->hostDrop(&drop);
}

Status CuptiCounters::prepare() {
  if (!names_.empty()) return {};
  SS_ASSIGN(cupti_, CuptiRanges::load());
  CuptiNothing nothing;
  SS_CALL(initialise, nothing);
  CuptiAvailability available;
  available.context = context_;
  SS_CALL(availability, available);
  available_.resize(available.bytes);
  available.image = available_.data();
  SS_CALL(availability, available);
  return choose();
}

Status CuptiCounters::choose() {
  std::span<const char* const> names = kMetrics;
  for (; names.size() >= kNeeded; names = names.first(names.size() - 1)) {
    const auto passes = passesOf(names);
    if (passes && *passes == 1) {
      names_.assign(names.begin(), names.end());
      return {};
    }
    if (names.size() == kNeeded && !passes) return tl::make_unexpected(passes.error());
  }
  return unsupported("this GPU does not count bytes of its memory in one pass");
}

Result<std::size_t> CuptiCounters::passesOf(std::span<const char* const> names) {
  dropHost();
  CuptiChipName chip;
  chip.device = static_cast<std::size_t>(device_);
  SS_CALL(chipName, chip);
  CuptiHostMake make;
  make.chip = chip.name;
  make.availability = available_.data();
  SS_CALL(hostMake, make);
  host_ = make.host;
  std::vector<const char*> list(names.begin(), names.end());
  CuptiHostMetrics metrics;
  metrics.host = host_;
  metrics.names = list.data();
  metrics.count = list.size();
  SS_CALL(addMetrics, metrics);
  CuptiHostConfigSize size;
  size.host = host_;
  SS_CALL(configSize, size);
  config_.resize(size.bytes);
  CuptiHostConfig config;
  config.host = host_;
  config.bytes = config_.size();
  config.image = config_.data();
  SS_CALL(config, config);
  CuptiPasses passes;
  passes.bytes = config_.size();
  passes.image = config_.data();
  SS_CALL(passes, passes);
  return passes.passes;
}

Status CuptiCounters::start() {
  Activity nobodys;
  take(nobodys);
  SS_TRY(prepare());
  CuptiEnable enable;
  enable.context = context_;
  SS_CALL(enable, enable);
  profiler_ = enable.profiler;
  const Status begun = [&]() -> Status {
    CuptiDataSize size;
    size.profiler = profiler_;
    size.names = names_.data();
    size.count = names_.size();
    size.mostRanges = room_;
    size.mostNodes = static_cast<std::uint32_t>(room_);
    SS_CALL(dataSize, size);
    data_.assign(size.bytes, 0);
    CuptiDataMake make;
    make.profiler = profiler_;
    make.bytes = data_.size();
    make.data = data_.data();
    SS_CALL(dataMake, make);
    CuptiConfigure configure;
    configure.profiler = profiler_;
    configure.configBytes = config_.size();
    configure.config = config_.data();
    configure.dataBytes = data_.size();
    configure.data = data_.data();
    configure.mostRanges = room_;
    SS_CALL(configure, configure);
    CuptiProfiler start;
    start.profiler = profiler_;
    SS_CALL(start, start);
    return {};
  }();
  calls_ = 0;
  on_ = begun.has_value();
  if (on_) return {};
  CuptiProfiler disable;
  disable.profiler = std::exchange(profiler_, nullptr);
  cupti_->disable(&disable);
  return begun;
}

std::int32_t CuptiCounters::begin() {
  if (!on_ || calls_++ >= room_) return -1;
  driver_.contextSynchronise();  // an error of the GPU is told by the call that follows
  const auto number = static_cast<std::int32_t>(calls_ - 1);
  const std::string name = std::to_string(number);
  CuptiPush push;
  push.profiler = profiler_;
  push.name = name.c_str();
  open_ = cupti_->push(&push) == 0;
  return open_ ? number : -1;
}

void CuptiCounters::end() {
  if (!std::exchange(open_, false)) return;
  driver_.contextSynchronise();
  CuptiProfiler pop;
  pop.profiler = profiler_;
  cupti_->pop(&pop);
}

bool CuptiCounters::read(std::size_t range, KernelCounters& counters) {
  double values[std::size(kMetrics)] = {};
  CuptiValues ask;
  ask.host = host_;
  ask.data = data_.data();
  ask.bytes = data_.size();
  ask.range = range;
  ask.names = names_.data();
  ask.count = names_.size();
  ask.values = values;
  const auto known = [](double value) { return std::isfinite(value) && value >= 0; };
  if (cupti_->values(&ask) != 0 || !std::all_of(values, values + names_.size(), known)) return false;
  counters.readBytes = std::llround(values[0]);
  counters.writtenBytes = std::llround(values[1]);
  if (names_.size() > 2) counters.occupancy = values[2] * kPercent;
  if (names_.size() > 3) counters.tensor = values[3] * kPercent;
  return true;
}

void CuptiCounters::take(Activity& activity) {
  if (!std::exchange(on_, false)) return;
  CuptiStop stop;
  stop.profiler = profiler_;
  CuptiDecode decode;
  decode.profiler = profiler_;
  CuptiDataInfo info;
  const bool counted = cupti_->stop(&stop) == 0 && cupti_->decode(&decode) == 0;
  info.data = data_.data();
  info.bytes = data_.size();
  std::vector<std::int32_t> places(calls_, -1);  // in activity.counters, by number of the call
  if (counted && cupti_->dataInfo(&info) == 0) {
    for (std::size_t range = 0; range < info.ranges; ++range) {
      CuptiRangeInfo about;
      about.data = data_.data();
      about.bytes = data_.size();
      about.range = range;
      about.delimiter = "/";
      KernelCounters counters;
      if (cupti_->rangeInfo(&about) != 0 || !about.name || !read(range, counters)) continue;
      std::size_t number = places.size();
      std::from_chars(about.name, about.name + std::strlen(about.name), number);
      if (number >= places.size()) continue;
      places[number] = static_cast<std::int32_t>(activity.counters.size());
      activity.counters.push_back(counters);
    }
  }
  // A call of a library may have run several kernels: the first of them has its counters.
  std::vector<ActivityRecord*> kernels;
  for (ActivityRecord& record : activity.records)
    if (record.kind == ActivityKind::kKernel) kernels.push_back(&record);
  std::ranges::stable_sort(kernels, {}, &ActivityRecord::begin);
  std::vector<bool> given(calls_);
  for (ActivityRecord* record : kernels) {
    const auto number = static_cast<std::size_t>(record->counters);
    const bool known = record->counters >= 0 && number < places.size();
    const bool again = known && given[number];
    record->counters = known && !again ? places[number] : -1;
    if (known) given[number] = true;
    if (record->counters < 0 && !again) ++activity.uncounted;
  }
  activity.counted = "bytes between the memory of the GPU and its caches";
  if (calls_ > room_) room_ = std::min(kMostRoom, std::max(2 * room_, calls_));
  CuptiProfiler disable;
  disable.profiler = std::exchange(profiler_, nullptr);
  cupti_->disable(&disable);
}

#undef SS_CALL

}  // namespace stepscope::cuda
