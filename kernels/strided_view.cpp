#include "kernels/strided_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace stepscope {

StridedView StridedView::whole(const Dims& dims) { return {dims, rowMajorStrides(dims), 0}; }

Result<StridedView> StridedView::read(const Dims& numbers) {
  const std::size_t rank = numbers.size() / 2;
  if (numbers.size() % 2 == 0) return invalid("expected an offset, the extents and as many strides");
  if (std::ranges::any_of(numbers, [](std::int64_t n) { return n < 0; })) return invalid("expected no negative number");
  const auto begin = numbers.begin() + 1, middle = begin + static_cast<std::ptrdiff_t>(rank);
  StridedView view{Dims(begin, middle), Dims(middle, numbers.end()), numbers.front()};
  SS_TRY(checkedElementCount(view.dims));
  return view;
}

Result<StridedView> StridedView::of(const Dims& dims, const Attributes& attrs, std::string_view name) {
  const Dims numbers = attrs.integers(name);
  if (numbers.empty()) return whole(dims);
  const auto wrong = [&](const std::string& expected) {
    return invalid(fmt::format("attribute {} is {} for a tensor {}; {}", name, dimsText(numbers), dimsText(dims), expected));
  };
  auto view = read(numbers);
  if (!view) return wrong(view.error().message);
  if (elementCount(view->dims) == 0) return view;
  std::int64_t last = view->offset;
  for (std::size_t i = 0; i < view->dims.size(); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view->dims[i] - 1, view->strides[i], &reach) || __builtin_add_overflow(last, reach, &last))
      return wrong("expected elements within the tensor");
  }
  if (last >= elementCount(dims)) return wrong("expected elements within the tensor");
  return view;
}

StridedView StridedView::transposed(const Dims& perm) const {
  if (perm.empty()) return *this;
  StridedView result{{}, {}, offset};
  for (const std::int64_t axis : perm) {
    result.dims.push_back(dims[static_cast<std::size_t>(axis)]);
    result.strides.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return result;
}

StridedView StridedView::sliced(std::size_t axis, std::int64_t begin, std::int64_t extent, std::int64_t step) const {
  StridedView result = *this;
  result.offset += begin * strides[axis];
  result.dims[axis] = extent;
  result.strides[axis] *= step;
  return result;
}

std::optional<StridedView> StridedView::reshaped(const Dims& to) const {
  if (elementCount(dims) != elementCount(to)) return std::nullopt;
  if (elementCount(dims) == 0) return StridedView{to, rowMajorStrides(to), offset};
  StridedView result{to, Dims(to.size(), 1), offset};
  // Axes from behind: runs of axes that lie like one, each to be cut into the new ones.
  std::size_t at = to.size();
  for (std::size_t i = dims.size(); i > 0;) {
    std::int64_t run = dims[i - 1], step = strides[i - 1];
    for (--i; i > 0 && (dims[i - 1] == 1 || run == 1 || strides[i - 1] == run * step); --i) {
      if (run == 1) step = strides[i - 1];
      run *= dims[i - 1];
    }
    std::int64_t covered = 1;
    while (at > 0 && covered < run) {
      --at;
      result.strides[at] = covered * step;
      covered *= to[at];
    }
    if (covered != run) return std::nullopt;
  }
  for (std::size_t i = to.size(); i-- > 0;)  // as in a dense tensor, so that axes before and behind may be joined
    if (to[i] == 1 && i + 1 < to.size()) result.strides[i] = result.strides[i + 1] * to[i + 1];
  return result;
}

bool StridedView::dense() const {
  std::int64_t expected = 1;
  for (std::size_t i = dims.size(); i-- > 0; expected *= dims[i])
    if (dims[i] != 1 && strides[i] != expected) return false;
  return true;
}

Dims StridedView::attribute() const {
  Dims numbers{offset};
  numbers.insert(numbers.end(), dims.begin(), dims.end());
  numbers.insert(numbers.end(), strides.begin(), strides.end());
  return numbers;
}

std::string StridedView::text() const {
  return fmt::format("{} of strides {} from {}", dimsText(dims), dimsText(strides), offset);
}

std::string_view viewAttributeOf(std::string_view domain, std::string_view op, std::size_t input) {
  constexpr std::string_view kProduct[] = {"viewA", "viewB"}, kAttention[] = {"viewQ", "viewK", "viewV"};
  constexpr std::string_view kChain[] = {"view0",  "view1",  "view2",  "view3",  "view4",  "view5",  "view6",  "view7",
                                         "view8",  "view9",  "view10", "view11", "view12", "view13", "view14", "view15",
                                         "view16", "view17", "view18", "view19", "view20", "view21", "view22", "view23"};
  if (domain != "stepscope") return {};
  if (op == "Pointwise" || op == "PointwiseSum" || op == "Join")
    return input < std::size(kChain) ? kChain[input] : std::string_view();
  if (op == "Product" || op == "EpilogueProduct") return input < 2 ? kProduct[input] : std::string_view();
  if (op == "FusedAttention") return input < 3 ? kAttention[input] : std::string_view();
  if (op == "FusedAttentionGrad") return input >= 2 && input < 5 ? kAttention[input - 2] : std::string_view();
  return {};
}

bool seesView(std::string_view domain, std::string_view op, std::size_t input, const Attributes& attrs) {
  const std::string_view name = viewAttributeOf(domain, op, input);
  return !name.empty() && attrs.has(name);
}

Result<StridedView> seenOperand(std::string_view domain, std::string_view op, std::size_t input, const Dims& dims,
                                const Attributes& attrs) {
  if (!seesView(domain, op, input, attrs)) return StridedView::whole(dims);
  return StridedView::of(dims, attrs, viewAttributeOf(domain, op, input));
}

}  // namespace stepscope
