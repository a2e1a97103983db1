// A CUPTI that makes its records of what the fake GPU does (observer.h). STEPSCOPE_FAKE_CUPTI orders faults: "refuse": no
// kind can be enabled, "refuse=KIND": that one cannot; "unload": kernels are loaded again; "drop=N": every N-th record of a
// kernel is dropped and counted. Its clock is not the host's: it counts from another moment, and runs 100 parts of a million
// faster. Records are handed over from the last to the first; before the first one of a kernel is the overhead of loading
// it, and one with data.
#include "kernels/cuda_device/cupti.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/fake_gpu/cupti_state.h"

using namespace stepscope::cuda;
namespace fake = stepscope::fake;

namespace {

constexpr CuptiResult kFailed = 999, kNoMore = 12, kQueueEmpty = 35;
constexpr std::int64_t kOffset = 77'000'000'000'000;

struct State {
  std::mutex mutex;
  std::set<std::uint32_t> enabled;
  CuptiBufferRequested requested = nullptr;
  CuptiBufferCompleted completed = nullptr;
  std::vector<std::vector<std::uint8_t>> records;
  std::size_t dropped = 0, kernels = 0;
  std::set<std::string> loaded;  // kernels
};
State& state() {
  static auto* const state = new State();
  return *state;
}
thread_local std::vector<std::uint64_t> externals;

std::string orders() {
  const char* const text = std::getenv("STEPSCOPE_FAKE_CUPTI");
  return text ? text : "";
}
std::uint64_t timeOf(std::int64_t host) { return static_cast<std::uint64_t>(kOffset + host + host / 10'000); }
std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Record>
void add(const Record& record) {
  if (!state().enabled.contains(record.kind)) return;
  std::vector<std::uint8_t> bytes((sizeof(record) + 7) / 8 * 8);
  std::memcpy(bytes.data(), &record, sizeof(record));
  state().records.push_back(std::move(bytes));
}

void called(std::uint32_t correlation, std::int64_t begin, std::int64_t end) {
  const std::lock_guard lock(state().mutex);
  add(CuptiCallRecord{kCuptiDriver, 0, timeOf(begin), timeOf(end), 0, 0, correlation, 0});
  // As CUPTI does: external ids come with the records of calls.
  if (!externals.empty() && state().enabled.contains(kCuptiDriver))
    add(CuptiExternalRecord{kCuptiExternalCorrelation, kCuptiCustom0, externals.back(), correlation, 0});
}

void waited(std::uint32_t correlation, fake::Waited what, std::int64_t begin, std::int64_t end) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  const std::lock_guard lock(state().mutex);
  const bool onStream = what != fake::Waited::kForEvent;
  const std::uint32_t type = what == fake::Waited::kForEvent         ? kCuptiOnEvent
                             : what == fake::Waited::kStreamForEvent ? kCuptiStreamWaits
                                                                     : kCuptiOnStream;
  add(CuptiSynchronizationRecord{kCuptiSynchronization, type, timeOf(begin), timeOf(end), correlation, 1,
                                 onStream ? 7 : kNone, what == fake::Waited::kForStream ? kNone : 3});
}

CuptiOverheadRecord overheadOf(std::uint32_t kind, std::uint64_t begin, std::uint64_t end, void* data = nullptr) {
  return {kCuptiOverhead, kind, 1, {}, begin, end, 0, 0, data};
}

void ran(std::uint32_t correlation, const fake::Work& work, std::int64_t begin, std::int64_t end) {
  const std::lock_guard lock(state().mutex);
  const std::uint64_t from = timeOf(begin), to = timeOf(end);
  if (work.kind == fake::Seen::kKernel) {
    if (state().loaded.insert(work.name).second) {
      add(overheadOf(kCuptiFunctionLoading, from - 2000, from - 1000));
      if (state().enabled.contains(kCuptiOverhead))
        add(overheadOf(kCuptiCommandsFull, from - 900, from - 800, std::malloc(12)));
    }
    fake::countKernel(work);
    ++state().kernels;
    const std::size_t drop = orders().starts_with("drop=") ? std::stoul(orders().substr(5)) : 0;
    if (drop > 0 && state().kernels % drop == 0) {
      ++state().dropped;
      return;
    }
    CuptiKernelRecord record{};
    record.kind = kCuptiKernel;
    record.registers = 48;
    record.start = from;
    record.end = to;
    record.grid[0] = static_cast<std::int32_t>(work.blocks);
    record.block[0] = work.threads;
    record.staticShared = 1024;
    record.correlation = correlation;
    record.name = work.name;
    add(record);
  } else if (work.kind == fake::Seen::kFill) {
    add(CuptiMemsetRecord{kCuptiMemset, 0, work.bytes, from, to, 0, 1, 7, correlation});
  } else {
    const std::uint8_t kind = work.kind == fake::Seen::kCopyIn    ? kCuptiToDevice
                              : work.kind == fake::Seen::kCopyOut ? kCuptiToHost
                                                                  : kCuptiWithin;
    add(CuptiMemcpyRecord{kCuptiMemcpy, kind, 0, 0, 0, work.bytes, from, to, 0, 1, 7, correlation});
  }
}

constexpr fake::Observer kObserver{called, waited, ran};

void observe(const fake::Observer* observer) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (const auto set = driver ? reinterpret_cast<fake::Observe>(dlsym(driver, "fakeGpuObserve")) : nullptr) set(observer);
}

}  // namespace

void fake::observeGpu() { observe(&kObserver); }

extern "C" {

CuptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = 130'000;
  return 0;
}
CuptiResult cuptiGetTimestamp(std::uint64_t* ns) {
  *ns = timeOf(now());
  return 0;
}
CuptiResult cuptiActivityRegisterCallbacks(CuptiBufferRequested requested, CuptiBufferCompleted completed) {
  state().requested = requested;
  state().completed = completed;
  return 0;
}
CuptiResult cuptiActivityEnable(std::uint32_t kind) {
  if (orders() == "refuse" || orders() == "refuse=" + std::to_string(kind)) return kFailed;
  observe(&kObserver);
  const std::lock_guard lock(state().mutex);
  if (orders() == "unload") state().loaded.clear();
  state().enabled.insert(kind);
  return 0;
}
CuptiResult cuptiActivityDisable(std::uint32_t kind) {
  const std::lock_guard lock(state().mutex);
  state().enabled.erase(kind);
  return 0;
}
CuptiResult cuptiActivityPushExternalCorrelationId(std::uint32_t, std::uint64_t id) {
  externals.push_back(id);
  return 0;
}
CuptiResult cuptiActivityPopExternalCorrelationId(std::uint32_t, std::uint64_t* last) {
  if (externals.empty()) return kQueueEmpty;
  *last = externals.back();
  externals.pop_back();
  return 0;
}
CuptiResult cuptiActivityGetNumDroppedRecords(CuContext, std::uint32_t, std::size_t* count) {
  *count = std::exchange(state().dropped, 0);
  return 0;
}
// Records of 8 bytes more than they have lie in the buffer: their size first.
CuptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CuptiRecord** record) {
  std::uint8_t* next = buffer;
  if (*record) {
    next = reinterpret_cast<std::uint8_t*>(*record);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, next - 8, 8);
    next += bytes;
  }
  if (next + 8 >= buffer + valid) return kNoMore;
  *record = reinterpret_cast<CuptiRecord*>(next + 8);
  return 0;
}
CuptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::vector<std::vector<std::uint8_t>> records;
  {
    const std::lock_guard lock(state().mutex);
    records.swap(state().records);
  }
  std::ranges::reverse(records);
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0, most = 0, used = 0;
  const auto complete = [&] {
    if (buffer) state().completed(nullptr, 0, buffer, bytes, used);
    buffer = nullptr;
  };
  // Small buffers, so that there are several.
  for (const auto& record : records) {
    if (buffer && (used + record.size() + 8 > bytes || used > 4096)) complete();
    if (!buffer) {
      state().requested(&buffer, &bytes, &most);
      used = 0;
    }
    const std::uint64_t size = record.size();
    std::memcpy(buffer + used, &size, 8);
    std::memcpy(buffer + used + 8, record.data(), record.size());
    used += record.size() + 8;
  }
  if (!buffer && state().dropped > 0) {
    state().requested(&buffer, &bytes, &most);
    used = 0;
  }
  complete();
  return 0;
}

}  // extern "C"
