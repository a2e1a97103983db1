// The rung "activity": records that CUPTI makes of kernels, copies, fills, calls, waits and overhead. Each piece of work and
// each wait gets a number, which is pushed as external correlation id around its calls, and by which its records are found;
// a wait without number (memory that goes) is nobody's, and so is overhead. CUPTI is one per process and so is a recording:
// `start` says no while another device records. Calls, waits and overhead may be kinds that a CUPTI refuses: then calls have
// the times that the host took around them.
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
  // A record of CUPTI's, before it is known whose it is.
  struct Ran {
    std::uint32_t correlation = 0;
    ActivityKind kind = ActivityKind::kKernel;
    std::int64_t begin = 0, end = 0, bytes = 0, shared = 0;
    int registers = 0;
    const char* what = "";
    bool onStream = true;  // false: a wait for something else
  };
  struct Call {
    std::int64_t begin = 0, end = 0;
  };
  static void bufferRequested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* mostRecords);
  static void bufferCompleted(CuContext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                              std::size_t valid);
  void read(std::uint8_t* buffer, std::size_t valid);
  ActivityRecord recordOf(const Ran& ran, std::size_t number);
  bool readClock();
  void stop();

  const Cupti& cupti_;
  std::mutex mutex_;  // buffers are completed by a thread of CUPTI's
  std::vector<Ran> ran_;
  std::unordered_map<std::uint32_t, std::uint64_t> numbers_;  // of work and waits, by CUPTI's correlation id
  std::unordered_map<std::uint32_t, Call> calls_;             // by the same
  std::int64_t dropped_ = 0;
  std::uint32_t version_ = 0;
  std::vector<ActivityRecord> work_;  // and waits; number n: at n - 1
  Activity activity_;
  bool on_ = false, open_ = false;  // open_: between begin and end
  std::int64_t lost_ = 0;
};

}  // namespace stepscope::cuda
