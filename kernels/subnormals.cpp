#include "kernels/subnormals.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stepscope {
namespace {

#if defined(__x86_64__)
// MXCSR: denormals are zero, flush to zero.
constexpr bool kCan = true;
constexpr unsigned kFlush = 0x8040;
bool flushes() { return (_mm_getcsr() & kFlush) == kFlush; }
void setFlush(bool on) { _mm_setcsr(on ? _mm_getcsr() | kFlush : _mm_getcsr() & ~kFlush); }
#elif defined(__aarch64__)
// FPCR: flush to zero, operands too.
constexpr bool kCan = true;
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
std::uint64_t control() {
  std::uint64_t word = 0;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
bool flushes() { return (control() & kFlush) != 0; }
void setFlush(bool on) {
  const std::uint64_t word = on ? control() | kFlush : control() & ~kFlush;
  asm volatile("msr fpcr, %0" ::"r"(word));
}
#else
constexpr bool kCan = false;
bool flushes() { return false; }
void setFlush(bool) {}
#endif

void setForTeam(bool on, int threads) {
#pragma omp parallel num_threads(threads)
  setFlush(on);
}

}  // namespace

bool canFlushSubnormals() { return kCan; }

SubnormalScope::SubnormalScope(bool flush, int threads) {
  if (!flush || !kCan) return;
  threads_ = threads > 0 ? threads : 1;
  before_ = flushes();
  setForTeam(true, threads_);
}

SubnormalScope::~SubnormalScope() {
  if (threads_ > 0) setForTeam(before_, threads_);
}

}  // namespace stepscope
