// The rung "activity": records that CUPTI makes of kernels, copies and fills. Each piece of work gets a number, which is
// pushed as external correlation id around the calls that put it on a stream, and by which its records are found. CUPTI is
// one per process and so is a recording: `start` says no while another device records.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/cuda_device/cupti.h"
#include "kernels/cuda_device/recording.h"

namespace stepscope::cuda {

class CuptiActivity final : public Recording {
 public:
  explicit CuptiActivity(const Cupti& cupti) : cupti_(cupti) {}
  ~CuptiActivity() override;
  CuptiActivity(const CuptiActivity&) = delete;
  CuptiActivity& operator=(const CuptiActivity&) = delete;

  bool start(CuStream clock) override;
  Activity take(CuStream clock) override;
  std::int64_t lost() const override { return lost_; }
  void begin(CuStream stream, StreamId id, const Work& work) override;
  void end(CuStream stream) override;

 private:
  // A record of the device, before it is known whose it is.
  struct Ran {
    std::uint32_t correlation = 0;
    ActivityKind kind = ActivityKind::kKernel;
    std::int64_t begin = 0, end = 0, bytes = 0, shared = 0;
    int registers = 0;
  };
  static void bufferRequested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* mostRecords);
  static void bufferCompleted(CuContext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                              std::size_t valid);
  void read(std::uint8_t* buffer, std::size_t valid);
  bool readClock();
  void stop();

  const Cupti& cupti_;
  std::mutex mutex_;  // buffers are completed by a thread of CUPTI's
  std::vector<Ran> ran_;
  std::unordered_map<std::uint32_t, std::uint64_t> numbers_;  // of work, by CUPTI's correlation id
  std::int64_t dropped_ = 0;
  std::vector<ActivityRecord> work_;  // number n: at n - 1
  Activity activity_;
  bool on_ = false, open_ = false;  // open_: between begin and end
  std::int64_t lost_ = 0;
};

}  // namespace stepscope::cuda
