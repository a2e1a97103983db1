#include "kernels/cuda_device/cupti_activity.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace stepscope::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20, kAlignment = 8;
// External ids come with the records of the calls of the driver.
constexpr std::uint32_t kKinds[] = {kCuptiKernel, kCuptiMemcpy, kCuptiMemset, kCuptiDriver, kCuptiExternalCorrelation};
// A library calls the runtime.
constexpr std::uint32_t kMoreKinds[] = {kCuptiRuntime, kCuptiSynchronization, kCuptiOverhead};

// Whose records the buffers hold; CUPTI's functions take no pointer of ours.
std::mutex& runningMutex() {
  static std::mutex mutex;
  return mutex;
}
CuptiActivity* running = nullptr;

const char* spentOn(std::uint32_t overhead) {
  switch (overhead) {
    case kCuptiCompiler: return "compiling in the driver";
    case kCuptiFlush: return "handing over records";
    case kCuptiInstrumentation: return "making records";
    case kCuptiResource: return "resources of the profiler";
    case kCuptiModuleLoading: return "loading a module";
    case kCuptiFunctionLoading: return "loading a kernel";
    case kCuptiCommandsFull: return "a full buffer of commands";
    case kCuptiBufferRequest: return "asking for a buffer of records";
    case kCuptiManagedMemory: return "starting up managed memory";
    default: return "something unknown";
  }
}

}  // namespace

CuptiActivity::~CuptiActivity() { stop(); }

void CuptiActivity::bufferRequested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* mostRecords) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *mostRecords = 0;  // as many as there is room for
}

void CuptiActivity::bufferCompleted(CuContext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                    std::size_t valid) {
  {
    const std::lock_guard lock(runningMutex());
    if (running) {
      running->read(buffer, valid);
      std::size_t dropped = 0;
      if (running->cupti_.dropped(context, stream, &dropped) == 0) running->dropped_ += static_cast<std::int64_t>(dropped);
    }
  }
  std::free(buffer);
}

void CuptiActivity::read(std::uint8_t* buffer, std::size_t valid) {
  const std::lock_guard lock(mutex_);
  const auto ran = [&](const auto& record, ActivityKind kind, std::uint64_t bytes, int registers, std::int64_t shared) {
    ran_.push_back({record.correlation, kind, static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end),
                    static_cast<std::int64_t>(bytes), shared, registers});
  };
  const auto waited = [&](const CuptiSynchronizationRecord& record) {
    const bool streamWaits = record.type == kCuptiStreamWaits, onStream = streamWaits || record.type == kCuptiOnStream;
    ran(record, streamWaits ? ActivityKind::kStreamWait : ActivityKind::kHostWait, 0, 0, 0);
    ran_.back().what = record.type == kCuptiOnStream    ? "a stream"
                       : record.type == kCuptiOnContext ? "all streams"
                                                        : "an event";
    ran_.back().onStream = onStream;
  };
  CuptiRecord* record = nullptr;
  while (cupti_.nextRecord(buffer, valid, &record) == 0) {
    if (record->kind == kCuptiKernel) {
      const auto& kernel = *reinterpret_cast<const CuptiKernelRecord*>(record);
      ran(kernel, ActivityKind::kKernel, 0, kernel.registers, kernel.staticShared + kernel.dynamicShared);
    } else if (record->kind == kCuptiMemcpy) {
      const auto& copy = *reinterpret_cast<const CuptiMemcpyRecord*>(record);
      const ActivityKind kind = copy.copyKind == kCuptiToDevice ? ActivityKind::kCopyIn
                                : copy.copyKind == kCuptiToHost ? ActivityKind::kCopyOut
                                                                : ActivityKind::kCopyWithin;
      ran(copy, kind, copy.bytes, 0, 0);
    } else if (record->kind == kCuptiMemset) {
      const auto& fill = *reinterpret_cast<const CuptiMemsetRecord*>(record);
      ran(fill, ActivityKind::kFill, fill.bytes, 0, 0);
    } else if (record->kind == kCuptiDriver || record->kind == kCuptiRuntime) {
      const auto& call = *reinterpret_cast<const CuptiCallRecord*>(record);
      if (call.start != 0)
        calls_[call.correlation] = {static_cast<std::int64_t>(call.start), static_cast<std::int64_t>(call.end)};
    } else if (record->kind == kCuptiSynchronization) {
      const auto& wait = *reinterpret_cast<const CuptiSynchronizationRecord*>(record);
      if (wait.start != 0) waited(wait);
    } else if (record->kind == kCuptiOverhead) {
      const auto& overhead = *reinterpret_cast<const CuptiOverheadRecord*>(record);
      if (overhead.overheadKind == kCuptiCommandsFull && version_ >= kCuptiOverheadData) std::free(overhead.data);
      if (overhead.start == 0) continue;
      ran_.push_back({0, ActivityKind::kOverhead, static_cast<std::int64_t>(overhead.start),
                      static_cast<std::int64_t>(overhead.end), 0, 0, 0, spentOn(overhead.overheadKind), false});
    } else if (record->kind == kCuptiExternalCorrelation) {
      const auto& external = *reinterpret_cast<const CuptiExternalRecord*>(record);
      if (external.externalKind == kCuptiCustom0) numbers_[external.correlation] = external.externalId;
    }
  }
}

bool CuptiActivity::readClock() {
  const std::int64_t before = hostClock();
  std::uint64_t now = 0;
  if (cupti_.timestamp(&now) != 0) return false;
  activity_.clocks.push_back({static_cast<std::int64_t>(now), before + (hostClock() - before) / 2});
  return true;
}

bool CuptiActivity::start(CuStream) {
  stop();
  {
    const std::lock_guard lock(runningMutex());
    if (running) return false;
    running = this;
  }
  work_.clear();
  ran_.clear();
  numbers_.clear();
  calls_.clear();
  dropped_ = 0;
  activity_ = {};
  if (cupti_.version(&version_) != 0) version_ = 0;
  on_ = cupti_.registerCallbacks(bufferRequested, bufferCompleted) == 0 && readClock() &&
        std::ranges::all_of(kKinds, [&](std::uint32_t kind) { return cupti_.enable(kind) == 0; });
  if (!on_) {
    on_ = true;  // for stop()
    stop();
    return false;
  }
  for (const std::uint32_t kind : kMoreKinds) cupti_.enable(kind);
  return true;
}

void CuptiActivity::stop() {
  if (!std::exchange(on_, false)) return;
  for (const std::uint32_t kind : kKinds) cupti_.disable(kind);
  for (const std::uint32_t kind : kMoreKinds) cupti_.disable(kind);
  cupti_.flushAll(kCuptiFlushAll);
  const std::lock_guard lock(runningMutex());
  if (running == this) running = nullptr;
}

void CuptiActivity::begin(CuStream, StreamId id, const Work& what) {
  open_ = false;
  if (!on_ || (activityId == 0 && isWork(what.kind))) return;
  ActivityRecord record;
  record.id = activityId;
  record.stream = id;
  record.kind = what.kind;
  record.bytes = what.bytes;
  record.counters = what.counters;
  if (what.kernel) record.kernel = numberOf(activity_, *what.kernel);
  open_ = cupti_.pushExternal(kCuptiCustom0, work_.size() + 1) == 0;
  record.called = hostClock();
  work_.push_back(record);
}

void CuptiActivity::end(CuStream) {
  if (!std::exchange(open_, false)) return;
  work_.back().returned = hostClock();
  std::uint64_t last = 0;
  cupti_.popExternal(kCuptiCustom0, &last);
}

// `number`: 0: nobody's.
ActivityRecord CuptiActivity::recordOf(const Ran& ran, std::size_t number) {
  ActivityRecord record = number > 0 ? work_[number - 1] : ActivityRecord{.stream = kNoStream};
  record.kind = ran.kind;
  record.begin = ran.begin;
  record.end = ran.end;
  record.correlation = ran.correlation;
  record.what = ran.what;
  if (const auto call = calls_.find(ran.correlation); ran.correlation != 0 && call != calls_.end()) {
    record.called = call->second.begin;
    record.returned = call->second.end;
    record.callsByDevice = true;
  }
  if (ran.kind != ActivityKind::kKernel) {
    record.bytes = ran.bytes;
    record.kernel = record.counters = -1;
    if (!ran.onStream) record.stream = kNoStream;
  } else if (record.kernel >= 0) {
    ActivityKernel kernel = activity_.kernels[static_cast<std::size_t>(record.kernel)];
    kernel.registers = ran.registers;
    kernel.sharedBytes = ran.shared;
    record.kernel = numberOf(activity_, kernel);
  }
  return record;
}

Activity CuptiActivity::take(CuStream) {
  if (!on_) return {};
  readClock();
  stop();  // hands over what is still in buffers
  std::vector<bool> told(work_.size());
  for (const Ran& ran : ran_) {
    const auto number = numbers_.find(ran.correlation);
    const bool known = number != numbers_.end() && number->second > 0 && number->second <= work_.size();
    if (!known && isWork(ran.kind)) continue;
    if (known && isWork(ran.kind)) told[number->second - 1] = true;
    activity_.records.push_back(recordOf(ran, known ? number->second : 0));
  }
  // Of a kernel there is one record; a copy within the host has none.
  for (std::size_t i = 0; i < work_.size(); ++i)
    activity_.lost += work_[i].kind == ActivityKind::kKernel && !told[i] ? 1 : 0;
  activity_.lost = std::max(activity_.lost, dropped_);
  lost_ += activity_.lost;
  return std::exchange(activity_, {});
}

}  // namespace stepscope::cuda
