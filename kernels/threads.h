// How many threads work is worth, and how many a library may take.
//
// A parallel region costs about a microsecond when every processor is free. When one is not, it waits for a thread that the
// system has put aside: milliseconds, in every region. So work is split only where each thread gets enough to do. The
// number depends on shapes and on the thread count of the session alone, never on the load, so a plan always computes the
// same bits.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace stepscope {

// What one thread does in about 20 microseconds (one core with AVX-512: 110 GF/s in oneDNN's products; loops that read and
// write a few streams). tests/bench/RESULTS.md has the measurements.
inline constexpr double kFlopsPerThread = 1 << 21;
inline constexpr std::int64_t kElementsPerThread = 1 << 16;  // of a plain loop

inline int threadsForFlops(double flops, int threads) {  // that many operations are worth
  return static_cast<int>(std::clamp(flops / kFlopsPerThread, 1.0, static_cast<double>(std::max(1, threads))));
}
inline int threadsForElements(std::int64_t elements, int threads) {  // the same for a plain loop
  return static_cast<int>(std::clamp<std::int64_t>(elements / kElementsPerThread, 1, std::max(1, threads)));
}

// While it lives, parallel regions of the calling thread that do not say how many threads they take get this many. oneDNN
// asks for that number when a primitive is made and again when it runs, and both must agree. What was set before is put
// back: the number belongs to the caller, who may have another session or OpenMP code of its own.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
    if (before_ != threads) omp_set_num_threads(threads);
    if (dynamic_ != 0) omp_set_dynamic(0);
  }
  ~ThreadScope() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
    if (dynamic_ != 0) omp_set_dynamic(dynamic_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_, dynamic_;
};

}  // namespace stepscope
