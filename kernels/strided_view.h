// A part of a dense tensor seen with other extents, read where it lies: what Slice, Split, Transpose and Reshape would copy.
//
//   element [i0, i1, …] of the view = element offset + i0 strides[0] + i1 strides[1] + … of the tensor
//
// An operand of an op that takes views has an attribute of integers, "viewA" and the like: the offset, the extents, the
// strides. Its spec says the extents of the whole tensor.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/attributes.h"
#include "kernels/shape.h"

namespace stepscope {

struct StridedView {
  Dims dims, strides;       // in elements; strides are 0 or more
  std::int64_t offset = 0;  // in elements

  static StridedView whole(const Dims& dims);
  // What attribute `name` says of a tensor of these extents; the whole tensor without it. Errors: those of read,
  // elements behind the end of the tensor.
  static Result<StridedView> of(const Dims& dims, const Attributes& attrs, std::string_view name);

  // The numbers of an attribute by themselves. Errors: another count of numbers, negative ones.
  static Result<StridedView> read(const Dims& numbers);

  // ONNX Transpose. `perm` has the axes in some order; empty: as they are.
  StridedView transposed(const Dims& perm) const;
  // `extent` places of an axis, from `begin` on, each `step` behind the one before. They are there; step is 1 or more.
  StridedView sliced(std::size_t axis, std::int64_t begin, std::int64_t extent, std::int64_t step = 1) const;
  // The same elements in the same order with other extents, as many; nothing where no strides say where they are.
  std::optional<StridedView> reshaped(const Dims& to) const;

  // Whether elements lie side by side in row-major order; they may begin behind the first of the tensor.
  bool dense() const;
  Dims attribute() const;    // the numbers of the attribute
  std::string text() const;  // "[2, 8, 4, 16] of strides [1536, 192, 16, 1] from 64"
};

// The attribute that says what an op's operand sees; empty where kernels of the op take no view of that input: Product,
// FusedAttention and FusedAttentionGrad of domain "stepscope" take them of their matrices, Pointwise, PointwiseSum and
// Join of their first 24 operands.
std::string_view viewAttributeOf(std::string_view domain, std::string_view op, std::size_t input);

// Whether an operand of an op with these attributes is seen through a view.
bool seesView(std::string_view domain, std::string_view op, std::size_t input, const Attributes& attrs);

// What the operand, a tensor of these extents, is to the op: all of it or the part that it sees. Errors: those of
// StridedView::of.
Result<StridedView> seenOperand(std::string_view domain, std::string_view op, std::size_t input, const Dims& dims,
                                const Attributes& attrs);

}  // namespace stepscope
