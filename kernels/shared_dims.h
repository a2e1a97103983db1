// The extents of a tensor, which views of tensors hold by pointer: of the many views of a plan most have equal ones.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/copy_on_write.h"
#include "kernels/shape.h"

namespace stepscope {

// Read like Dims, and converts from and to them. Changed by assignment alone.
class SharedDims {
 public:
  SharedDims() = default;
  // One that is equal and was made lately in this thread is shared.
  SharedDims(Dims dims);  // NOLINT: implicit, as a copy of Dims is
  SharedDims(std::initializer_list<std::int64_t> dims) : SharedDims(Dims(dims)) {}

  const Dims& get() const { return *held_; }
  operator const Dims&() const { return get(); }  // NOLINT: implicit, it is read as Dims
  std::size_t size() const { return get().size(); }
  bool empty() const { return get().empty(); }
  std::int64_t operator[](std::size_t i) const { return get()[i]; }
  std::int64_t at(std::size_t i) const { return get().at(i); }
  std::int64_t front() const { return get().front(); }
  std::int64_t back() const { return get().back(); }
  const std::int64_t* data() const { return get().data(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  auto rbegin() const { return get().rbegin(); }
  auto rend() const { return get().rend(); }

  friend bool operator==(const SharedDims& a, const SharedDims& b) { return a.held_.isSame(b.held_) || a.get() == b.get(); }
  friend bool operator==(const SharedDims& a, const Dims& b) { return a.get() == b; }

 private:
  CopyOnWrite<Dims> held_;  // nothing: no dims, those of a scalar
};

}  // namespace stepscope
