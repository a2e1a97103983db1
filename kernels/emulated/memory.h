// Memory as a kernel of the emulator sees it: an operand of a launch, or an array shared by the threads of a block. Every
// access goes through Ref, which checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/emulated/shadow.h"

namespace stepscope::emulated {

class Launch;

// How a launch uses an operand.
enum class Access : std::uint8_t {
  kRead,       // every element has a value
  kWrite,      // no element has a value before, every element has one behind
  kPart,       // as kWrite, but other launches may write the rest
  kReadWrite,  // every element has a value before and may get another
};

// Bytes that the threads of a launch moved from and to memory of the device, every access counted: there are no caches.
struct Traffic {
  std::int64_t read = 0, written = 0;
};

struct Memory {
  Launch* launch = nullptr;
  std::string name;              // "input 0", "shared array 1"
  std::byte* address = nullptr;  // of the device; of the host for shared arrays
  std::byte* open = nullptr;     // where it lies while the launch runs
  std::int64_t count = 0;        // elements
  std::size_t size = 0;          // bytes of one
  Access access = Access::kRead;
  Cell* cells = nullptr;       // of element 0; null = not tracked
  Traffic* traffic = nullptr;  // null = not counted, as of shared arrays
};

// Errors of an access are thrown (Fault): a kernel has nothing to return.
[[noreturn]] void outOfBounds(const Memory& memory, std::int64_t index, std::int64_t count);
[[noreturn]] void misaligned(const Memory& memory, std::int64_t index, std::size_t bytes);
[[noreturn]] void readOnly(const Memory& memory, std::int64_t index);
[[noreturn]] void absentOperand();
void noteRead(const Memory& memory, std::int64_t index);
void noteWrite(const Memory& memory, std::int64_t index, bool atomic = false);

// What operator[] of the kernels gives.
template <typename T>
class Ref {
 public:
  Ref(const Memory& memory, std::int64_t index) : memory_(memory), index_(index) {}
  operator std::remove_const_t<T>() const { return value(); }  // NOLINT: as a reference would
  std::remove_const_t<T> value() const {
    if (memory_.cells) noteRead(memory_, index_);
    if (memory_.traffic) memory_.traffic->read += static_cast<std::int64_t>(sizeof(T));
    return *at();
  }
  const Ref& operator=(std::remove_const_t<T> value) const {
    if constexpr (std::is_const_v<T>) readOnly(memory_, index_);
    if (memory_.cells) noteWrite(memory_, index_);
    if (memory_.traffic) memory_.traffic->written += static_cast<std::int64_t>(sizeof(T));
    *at() = value;
    return *this;
  }
  const Ref& operator=(const Ref& other) const { return *this = other.value(); }
  const Ref& operator+=(std::remove_const_t<T> value) const { return *this = this->value() + value; }
  const Ref& operator*=(std::remove_const_t<T> value) const { return *this = this->value() * value; }

 private:
  std::remove_const_t<T>* at() const { return reinterpret_cast<std::remove_const_t<T>*>(memory_.open) + index_; }
  const Memory& memory_;
  std::int64_t index_;
};

}  // namespace stepscope::emulated
