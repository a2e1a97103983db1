// The range profiler of the fake CUPTI: it counts for the range that is open when a kernel runs, with numbers that follow
// from the shape of its launch. STEPSCOPE_FAKE_COUNTERS orders faults, with commas between: "refuse=N":
// enabling answers N; "pass=N": a pass counts N metrics; "lose=N": every N-th range is not decoded; "no-values": none can be
// read.
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda_device/cupti_counters.h"
#include "tests/kernels/fake_gpu/cupti_state.h"

using namespace stepscope::cuda;
namespace fake = stepscope::fake;

namespace {

constexpr CuptiResult kInvalidParameter = 1, kInvalidOperation = 7, kInvalidMetric = 24, kFailed = 999;

std::size_t ordered(const std::string& item, std::size_t otherwise) {
  const char* const text = std::getenv("STEPSCOPE_FAKE_COUNTERS");
  const std::string orders = text ? text : "";
  const std::size_t at = orders.find(item + "=");
  return at == std::string::npos ? otherwise : std::stoul(orders.substr(at + item.size() + 1));
}

struct Range {
  std::string name;
  double values[4] = {};
  int kernels = 0;
};
struct Profiler {
  std::vector<Range> ranges, decoded;
  std::size_t room = 0;
  std::uint8_t* data = nullptr;
  bool configured = false, started = false, stopped = false, open = false;
};
Profiler* profiler = nullptr;  // null: not enabled
struct Host {
  std::vector<std::string> names;
};
constexpr char kConfig[] = "config of metrics: ";

template <typename Parameters>
bool wrong(const Parameters* parameters) {
  return !parameters || parameters->size != Parameters().size || parameters->none;
}
int numberOf(const std::string& name) {
  for (int i = 0; i < 4; ++i)
    if (name == CuptiCounters::kMetrics[i]) return i;
  return -1;
}

}  // namespace

namespace stepscope::fake {

void countKernel(const Work& work) {
  if (!profiler || !profiler->started || !profiler->open) return;
  Range& range = profiler->ranges.back();
  ++range.kernels;
  range.values[0] += static_cast<double>(1000 * work.blocks + work.threads);
  range.values[1] += static_cast<double>(10 * work.blocks + 1);
  range.values[2] += 37.5;
  range.values[3] += std::strstr(work.name, "library product") ? 62.5 : 0;
}

}  // namespace stepscope::fake

extern "C" {

CuptiResult cuptiProfilerInitialize(CuptiNothing* p) { return wrong(p) ? kInvalidParameter : 0; }
CuptiResult cuptiDeviceGetChipName(CuptiChipName* p) {
  if (wrong(p) || p->device != 0) return kInvalidParameter;
  p->name = "GH100";
  return 0;
}
CuptiResult cuptiProfilerGetCounterAvailability(CuptiAvailability* p) {
  if (wrong(p) || !p->context) return kInvalidParameter;
  p->bytes = 5;
  if (p->image) std::memcpy(p->image, "there", 5);
  return 0;
}
CuptiResult cuptiProfilerHostInitialize(CuptiHostMake* p) {
  if (wrong(p) || std::strcmp(p->chip, "GH100") != 0 || !p->availability || std::memcmp(p->availability, "there", 5) != 0)
    return kInvalidParameter;
  p->host = new Host();
  return 0;
}
CuptiResult cuptiProfilerHostDeinitialize(CuptiHost* p) {
  if (wrong(p)) return kInvalidParameter;
  delete static_cast<Host*>(p->host);
  return 0;
}
CuptiResult cuptiProfilerHostConfigAddMetrics(CuptiHostMetrics* p) {
  if (wrong(p)) return kInvalidParameter;
  for (std::size_t i = 0; i < p->count; ++i) {
    if (numberOf(p->names[i]) < 0) return kInvalidMetric;
    static_cast<Host*>(p->host)->names.emplace_back(p->names[i]);
  }
  return 0;
}
CuptiResult cuptiProfilerHostGetConfigImageSize(CuptiHostConfigSize* p) {
  if (wrong(p)) return kInvalidParameter;
  p->bytes = sizeof(kConfig);
  return 0;
}
CuptiResult cuptiProfilerHostGetConfigImage(CuptiHostConfig* p) {
  if (wrong(p) || p->bytes != sizeof(kConfig)) return kInvalidParameter;
  std::memcpy(p->image, kConfig, sizeof(kConfig));
  p->image[sizeof(kConfig) - 1] = static_cast<std::uint8_t>(static_cast<Host*>(p->host)->names.size());
  return 0;
}
CuptiResult cuptiProfilerHostGetNumOfPasses(CuptiPasses* p) {
  if (wrong(p) || p->bytes != sizeof(kConfig)) return kInvalidParameter;
  const std::size_t inPass = ordered("pass", 4);
  p->passes = (p->image[sizeof(kConfig) - 1] + inPass - 1) / inPass;
  return 0;
}
CuptiResult cuptiProfilerHostEvaluateToGpuValues(CuptiValues* p) {
  const char* const text = std::getenv("STEPSCOPE_FAKE_COUNTERS");
  if (text && std::strstr(text, "no-values")) return kFailed;
  if (wrong(p) || !profiler || p->data != profiler->data || p->range >= profiler->decoded.size()) return kInvalidParameter;
  const Range& range = profiler->decoded[p->range];
  for (std::size_t i = 0; i < p->count; ++i) {
    const int which = numberOf(p->names[i]);
    if (which < 0) return kInvalidMetric;
    p->values[i] = which < 2 || range.kernels == 0 ? range.values[which] : range.values[which] / range.kernels;
  }
  return 0;
}

CuptiResult cuptiRangeProfilerEnable(CuptiEnable* p) {
  if (wrong(p) || !p->context || profiler) return kInvalidParameter;
  if (const auto answer = ordered("refuse", 0); answer != 0) return static_cast<CuptiResult>(answer);
  fake::observeGpu();
  p->profiler = profiler = new Profiler();
  return 0;
}
CuptiResult cuptiRangeProfilerDisable(CuptiProfiler* p) {
  if (wrong(p) || p->profiler != profiler || !profiler) return kInvalidParameter;
  delete std::exchange(profiler, nullptr);
  return 0;
}
CuptiResult cuptiRangeProfilerGetCounterDataSize(CuptiDataSize* p) {
  if (wrong(p) || p->profiler != profiler || p->mostNodes < p->mostRanges) return kInvalidParameter;
  p->bytes = 16 * p->mostRanges;
  return 0;
}
CuptiResult cuptiRangeProfilerCounterDataImageInitialize(CuptiDataMake* p) {
  if (wrong(p) || p->profiler != profiler || !p->data) return kInvalidParameter;
  profiler->data = p->data;
  profiler->room = p->bytes / 16;
  return 0;
}
CuptiResult cuptiRangeProfilerSetConfig(CuptiConfigure* p) {
  if (wrong(p) || p->profiler != profiler || p->data != profiler->data || p->mostRanges != profiler->room ||
      p->range != kCuptiUserRange || p->replay != kCuptiUserReplay || p->levels != 1 || p->leastLevel != 1 ||
      std::memcmp(p->config, kConfig, sizeof(kConfig) - 1) != 0)
    return kInvalidParameter;
  profiler->configured = true;
  return 0;
}
CuptiResult cuptiRangeProfilerStart(CuptiProfiler* p) {
  if (wrong(p) || p->profiler != profiler || !profiler->configured) return kInvalidOperation;
  profiler->started = true;
  return 0;
}
CuptiResult cuptiRangeProfilerStop(CuptiStop* p) {
  if (wrong(p) || p->profiler != profiler || !profiler->started || profiler->open) return kInvalidOperation;
  profiler->started = false;
  profiler->stopped = true;
  p->all = 1;
  return 0;
}
CuptiResult cuptiRangeProfilerPushRange(CuptiPush* p) {
  if (wrong(p) || p->profiler != profiler || !profiler->started || profiler->open) return kInvalidOperation;
  if (profiler->ranges.size() == profiler->room) return kInvalidOperation;
  profiler->open = true;
  profiler->ranges.push_back({p->name, {}, 0});
  return 0;
}
CuptiResult cuptiRangeProfilerPopRange(CuptiProfiler* p) {
  if (wrong(p) || p->profiler != profiler || !profiler->open) return kInvalidOperation;
  profiler->open = false;
  return 0;
}
// The last range first: nothing may depend on their order.
CuptiResult cuptiRangeProfilerDecodeData(CuptiDecode* p) {
  if (wrong(p) || p->profiler != profiler || !profiler->stopped) return kInvalidOperation;
  const std::size_t lose = ordered("lose", 0);
  for (std::size_t i = profiler->ranges.size(); i-- > 0;)
    if (lose == 0 || i % lose != 0)
      profiler->decoded.push_back(profiler->ranges[i]);
    else
      ++p->dropped;
  return 0;
}
CuptiResult cuptiRangeProfilerGetCounterDataInfo(CuptiDataInfo* p) {
  if (wrong(p) || !profiler || p->data != profiler->data) return kInvalidParameter;
  p->ranges = profiler->decoded.size();
  return 0;
}
CuptiResult cuptiRangeProfilerCounterDataGetRangeInfo(CuptiRangeInfo* p) {
  if (wrong(p) || !profiler || p->data != profiler->data || p->range >= profiler->decoded.size()) return kInvalidParameter;
  p->name = profiler->decoded[p->range].name.c_str();
  return 0;
}

}  // extern "C"
