#include "engine/wire/border.h"

#include <atomic>
#include <cstdlib>

namespace stepscope {
namespace {

constexpr std::size_t kReserveBytes = std::size_t{16} << 20;
std::atomic<void*> reserve = nullptr;
std::atomic<bool> spent = false;

void giveBack() {
  void* const held = reserve.exchange(nullptr);
  if (!held) throw std::bad_alloc();
  spent = true;
  std::free(held);
}

}  // namespace

void holdReserve() {
  spent = false;
  if (!reserve) reserve = std::malloc(kReserveBytes);
  std::set_new_handler(giveBack);
}

bool reserveIsSpent() { return spent; }

}  // namespace stepscope
