#include "tests/engine/exec/heap_count.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

namespace {

using stepscope::testing::Taker;

#ifdef SS_SANITIZED
constexpr bool kCounted = false;
#else
constexpr bool kCounted = true;
#endif

struct Counter {
  std::atomic<std::int64_t> calls{0}, bytes{0};
};
Counter counters[3];

struct Range {
  std::uintptr_t begin = 0, end = 0;
};
Range ranges[3];  // of libraries, by Taker
std::atomic<bool> ready{false};

int findRange(dl_phdr_info* info, std::size_t, void*) {
  const Taker taker = std::strstr(info->dlpi_name, "libdnnl")   ? Taker::kOneDnn
                      : std::strstr(info->dlpi_name, "libgomp") ? Taker::kOpenMp
                                                                : Taker::kOurs;
  if (taker == Taker::kOurs) return 0;
  Range& range = ranges[static_cast<std::size_t>(taker)];
  range.begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      range.end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
  return 0;
}

[[maybe_unused]] void count(std::size_t bytes, const void* caller) {
  if (!ready.load(std::memory_order_acquire)) return;
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  std::size_t taker = 0;
  for (std::size_t t = 1; t < 3; ++t)
    if (ranges[t].begin <= address && address < ranges[t].end) taker = t;
  counters[taker].calls.fetch_add(1, std::memory_order_relaxed);
  counters[taker].bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace

#ifndef SS_SANITIZED
#define SS_CALLER __builtin_return_address(0)

extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(bytes, SS_CALLER);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count(n * bytes, SS_CALLER);
  return __libc_calloc(n, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  count(bytes, SS_CALLER);
  return __libc_realloc(block, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes, SS_CALLER);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes, SS_CALLER);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  count(bytes, SS_CALLER);
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : ENOMEM;
}
void free(void* block);

}  // extern "C"

namespace {
void* require(void* block) {
  if (!block) throw std::bad_alloc();
  return block;
}
}  // namespace

void* operator new(std::size_t bytes) {
  count(bytes, SS_CALLER);
  return require(__libc_malloc(bytes == 0 ? 1 : bytes));
}
void* operator new[](std::size_t bytes) {
  count(bytes, SS_CALLER);
  return require(__libc_malloc(bytes == 0 ? 1 : bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count(bytes, SS_CALLER);
  return require(__libc_memalign(static_cast<std::size_t>(alignment), bytes));
}
void operator delete(void* block) noexcept { free(block); }
void operator delete[](void* block) noexcept { free(block); }
void operator delete(void* block, std::size_t) noexcept { free(block); }
void operator delete[](void* block, std::size_t) noexcept { free(block); }
void operator delete(void* block, std::align_val_t) noexcept { free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { free(block); }
#endif

namespace stepscope::testing {

std::array<HeapCount, 3> heapTaken() {
  if (!ready.load(std::memory_order_acquire)) {
    dl_iterate_phdr(findRange, nullptr);
    ready.store(true, std::memory_order_release);
  }
  std::array<HeapCount, 3> taken;
  for (std::size_t t = 0; t < 3; ++t) taken[t] = {counters[t].calls.load(), counters[t].bytes.load()};
  return taken;
}

bool heapIsCounted() { return kCounted; }

}  // namespace stepscope::testing
