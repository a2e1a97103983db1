// The shape of a value, if its rank is known. Values hold it by pointer: a graph has hundreds of thousands of them and few
// different shapes.
#pragma once

#include <optional>
#include <utility>

#include "engine/ir/dim.h"
#include "kernels/copy_on_write.h"

namespace stepscope {

// Read like a std::optional<Shape>, and converts from and to one. Changed by assignment alone.
class SharedShape {
 public:
  SharedShape() = default;
  SharedShape(std::nullopt_t) {}                  // NOLINT: implicit, as is an optional
  SharedShape(const std::optional<Shape>& shape)  // NOLINT: likewise
      : SharedShape(shape ? SharedShape(*shape) : SharedShape()) {}
  // One that is equal and was made lately in this thread is shared.
  SharedShape(Shape shape);  // NOLINT: likewise

  const std::optional<Shape>& get() const { return *held_; }
  operator const std::optional<Shape>&() const { return get(); }  // NOLINT: likewise
  explicit operator bool() const { return held_.holds(); }
  bool has_value() const { return held_.holds(); }
  const Shape& value() const { return get().value(); }
  const Shape& operator*() const { return *get(); }
  const Shape* operator->() const { return &*get(); }

  friend bool operator==(const SharedShape& a, const SharedShape& b) {
    return a.held_.isSame(b.held_) || a.get() == b.get();
  }
  friend bool operator==(const SharedShape& a, const std::optional<Shape>& b) { return a.get() == b; }
  friend bool operator==(const SharedShape& a, const Shape& b) { return a.get() == b; }

 private:
  CopyOnWrite<std::optional<Shape>> held_;  // holds one with a shape, or nothing
};

}  // namespace stepscope
