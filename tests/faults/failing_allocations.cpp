// Loaded before a program (LD_PRELOAD): the request for memory that the environment names gets none, all others do.
//
//   STEPSCOPE_FAIL_ALLOCATION=N     the N-th request from the beginning of main on
//   STEPSCOPE_FAIL_LARGE=1          and all later ones of 1 MiB or more: the machine is full, and stays so
//   STEPSCOPE_COUNT_ALLOCATIONS=FILE  writes how many there were, at the end
//
// Requests of operator new only: what C libraries ask for with malloc they check themselves, or end the process by design.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> requests = 0;
std::atomic<bool> inMain = false;  // what the libraries need to be loaded is not the program's to check
long failing = 0;
bool lasting = false;
constexpr std::size_t kLarge = std::size_t{1} << 20;

struct Setting {
  Setting() {
    if (const char* number = std::getenv("STEPSCOPE_FAIL_ALLOCATION")) failing = std::atol(number);
    lasting = std::getenv("STEPSCOPE_FAIL_LARGE") != nullptr;
  }
  ~Setting() {
    const char* path = std::getenv("STEPSCOPE_COUNT_ALLOCATIONS");
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::fprintf(file, "%ld\n", requests.load());
    std::fclose(file);
  }
} setting;

void* give(std::size_t bytes, std::size_t alignment, bool throws) {
  const long number = inMain ? ++requests : 0;
  const bool lasts = lasting && number > failing && bytes >= kLarge;
  bool none = number > 0 && (number == failing || lasts);
  while (true) {
    void* memory = nullptr;
    if (!none && alignment <= alignof(std::max_align_t)) memory = std::malloc(bytes ? bytes : 1);
    if (!none && alignment > alignof(std::max_align_t) && posix_memalign(&memory, alignment, bytes ? bytes : 1) != 0)
      memory = nullptr;
    if (memory || !throws) return memory;
    // As the standard has it: the handler may have found some.
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
    none = lasts;
  }
}

int (*realMain)(int, char**, char**) = nullptr;

int mainWithCount(int argc, char** argv, char** environment) {
  inMain = true;
  const int code = realMain(argc, argv, environment);
  inMain = false;
  return code;
}

std::size_t of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

// What the start of every program calls, with its main.
extern "C" int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*begin)(), void (*end)(),
                                 void (*loader)(), void* stack) {
  realMain = program;
  using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  return reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"))(mainWithCount, argc, argv, begin, end, loader,
                                                                        stack);
}

void* operator new(std::size_t n) { return give(n, 0, true); }
void* operator new[](std::size_t n) { return give(n, 0, true); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return give(n, 0, false); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return give(n, 0, false); }
void* operator new(std::size_t n, std::align_val_t a) { return give(n, of(a), true); }
void* operator new[](std::size_t n, std::align_val_t a) { return give(n, of(a), true); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
