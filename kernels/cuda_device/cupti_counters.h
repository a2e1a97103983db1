// The rung "counters": what the hardware counts while the kernels of one call run, by CUPTI's range profiler. A call is a
// range of its own, named by its number, and nothing else runs meanwhile: what is on the streams is waited for before and
// behind it.
//
// Only what one pass can count is counted, so nothing runs twice: a step is what it is without counters, but slower. Of
// kMetrics those at the end are left out until the rest needs one pass; the GPUs that CUPTI 13 knows count all four in one.
// Operations are not among them: they would need a second pass.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/cuda_device/cupti_ranges.h"
#include "kernels/cuda_device/recording.h"

namespace stepscope::cuda {

class CuptiCounters {
 public:
  // In the order of KernelCounters; what is left out first is last.
  static constexpr const char* kMetrics[] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                             "sm__warps_active.avg.pct_of_peak_sustained_active",
                                             "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"};
  static constexpr std::size_t kNeeded = 2;

  // Calls come with the context current.
  CuptiCounters(const Driver& driver, CuContext context, CuDevice device)
      : driver_(driver), context_(context), device_(device) {}
  ~CuptiCounters();
  CuptiCounters(const CuptiCounters&) = delete;
  CuptiCounters& operator=(const CuptiCounters&) = delete;

  // Errors: kUnsupported, for people: no such CUPTI, no rights (ERR_NVGPUCTRPERM), another profiler, a GPU without them.
  Status start();
  bool on() const { return on_; }
  // Around a call that puts kernels on a stream. The number of the call from 0; -1: it is not counted.
  std::int32_t begin();
  void end();
  // Gives records their counters: those whose `counters` is the number of a call. Ends counting.
  void take(Activity& activity);

 private:
  Status prepare();
  // Which metrics, and how the hardware is set up for them, with a host object in host_.
  Status choose();
  Result<std::size_t> passesOf(std::span<const char* const> names);
  void dropHost();
  // Of the values of range `range`; false: CUPTI does not say.
  bool read(std::size_t range, KernelCounters& counters);

  const Driver& driver_;
  const CuContext context_;
  const CuDevice device_;
  const CuptiRanges* cupti_ = nullptr;  // null until prepared
  std::vector<std::uint8_t> available_, config_, data_;
  std::vector<const char*> names_;
  void* host_ = nullptr;
  void* profiler_ = nullptr;  // null unless enabled
  std::size_t room_ = 1024, calls_ = 0;
  bool on_ = false, open_ = false;
};

}  // namespace stepscope::cuda
