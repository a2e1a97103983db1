// Views: what Transpose, Slice and Reshape make of them, element by element, and which attributes are none.
#include "kernels/strided_view.h"

#include <gtest/gtest.h>

#include <random>

namespace stepscope {
namespace {

// Where the elements lie, in row-major order of the view.
Dims placesOf(const StridedView& view) {
  Dims places;
  for (std::int64_t i = 0; i < elementCount(view.dims); ++i) {
    std::int64_t at = view.offset, rest = i;
    for (std::size_t a = view.dims.size(); a-- > 0; rest /= view.dims[a]) at += rest % view.dims[a] * view.strides[a];
    places.push_back(at);
  }
  return places;
}

TEST(StridedView, PartsOfAPackedProjection) {
  const StridedView whole = StridedView::whole({2, 5, 12});
  EXPECT_TRUE(whole.dense());
  const StridedView keys = whole.sliced(2, 4, 4);
  EXPECT_FALSE(keys.dense());
  const auto heads = keys.reshaped({2, 5, 2, 2});
  ASSERT_TRUE(heads.has_value());
  EXPECT_EQ(heads->dims, (Dims{2, 5, 2, 2}));
  EXPECT_EQ(heads->strides, (Dims{60, 12, 2, 1}));
  EXPECT_EQ(heads->offset, 4);
  EXPECT_EQ(heads->transposed({0, 2, 1, 3}).strides, (Dims{60, 2, 12, 1}));
  EXPECT_FALSE(keys.reshaped({2, 20}).has_value()) << "rows lie apart";
  EXPECT_EQ(keys.reshaped({10, 4})->strides, (Dims{12, 1}));
}

// Whatever reshaped() answers has the same elements in the same order; where it has none, no other strides would do: found
// by trying all that the elements allow.
TEST(StridedView, ReshapesKeepOrder) {
  std::mt19937 random(3);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  int found = 0, none = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Dims dims;
    for (int a = draw(1, 4); a > 0; --a) dims.push_back(draw(1, 4));
    StridedView view = StridedView::whole(dims);
    for (int change = draw(0, 2); change > 0; --change) {
      const auto axis = static_cast<std::size_t>(draw(0, static_cast<int>(dims.size()) - 1));
      const std::int64_t extent = view.dims[axis], begin = draw(0, static_cast<int>(extent) - 1);
      view = view.sliced(axis, begin, draw(1, static_cast<int>(extent - begin)));
      Dims perm(dims.size());
      for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
      if (draw(0, 2) == 0) std::shuffle(perm.begin(), perm.end(), random);
      view = view.transposed(perm);
    }
    Dims to;
    std::int64_t rest = elementCount(view.dims);
    while (rest > 1) {
      std::int64_t extent = draw(1, static_cast<int>(rest));
      while (rest % extent != 0) --extent;
      to.push_back(extent);
      rest /= extent;
    }
    const auto seen = view.reshaped(to);
    const Dims places = placesOf(view);
    if (seen) {
      ++found;
      ASSERT_EQ(seen->dims, to);
      ASSERT_EQ(placesOf(*seen), places) << view.text() << " as " << dimsText(to);
      continue;
    }
    ++none;
    // The only strides there could be: how far the second element of each axis is from the first.
    StridedView other{to, Dims(to.size(), 0), view.offset};
    std::int64_t step = 1;
    for (std::size_t a = to.size(); a-- > 0; step *= to[a])
      if (to[a] > 1) other.strides[a] = places[static_cast<std::size_t>(step)] - places[0];
    EXPECT_NE(placesOf(other), places) << view.text() << " as " << dimsText(to);
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 50);
}

TEST(StridedView, AttributesThereAndBack) {
  const StridedView view = StridedView::whole({2, 5, 12}).sliced(2, 4, 4);
  Attributes attrs;
  attrs.set("viewA", view.attribute());
  const auto read = StridedView::of({2, 5, 12}, attrs, "viewA");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(placesOf(*read), placesOf(view));
  EXPECT_EQ(placesOf(*StridedView::of({2, 3}, attrs, "viewB")), (Dims{0, 1, 2, 3, 4, 5}));
}

TEST(StridedView, AttributesThatAreNone) {
  const auto refusal = [](Dims numbers) {
    Attributes attrs;
    attrs.set("viewA", std::move(numbers));
    const auto view = StridedView::of({2, 6}, attrs, "viewA");
    return view ? std::string() : view.error().message;
  };
  EXPECT_EQ(refusal({0, 2, 3, 6, 1}), "");
  EXPECT_EQ(refusal({11, 1, 1}), "");
  EXPECT_EQ(refusal({0, 2, 3, 6}),
            "attribute viewA is [0, 2, 3, 6] for a tensor [2, 6]; expected an offset, the extents and "
            "as many strides");
  EXPECT_NE(refusal({-1, 2, 3, 6, 1}).find("no negative number"), std::string::npos);
  EXPECT_NE(refusal({4, 2, 3, 6, 1}).find("elements within the tensor"), std::string::npos);
  EXPECT_NE(refusal({0, 4, std::int64_t{1} << 62}).find("elements within the tensor"), std::string::npos);
}

TEST(StridedView, WhoTakesViews) {
  EXPECT_EQ(viewAttributeOf("stepscope", "Product", 1), "viewB");
  EXPECT_EQ(viewAttributeOf("stepscope", "Product", 3), "");
  EXPECT_EQ(viewAttributeOf("stepscope", "FusedAttentionGrad", 4), "viewV");
  EXPECT_EQ(viewAttributeOf("stepscope", "FusedAttentionGrad", 0), "");
  EXPECT_EQ(viewAttributeOf("", "MatMul", 0), "");
  EXPECT_EQ(viewAttributeOf("stepscope", "Pointwise", 23), "view23");
  EXPECT_EQ(viewAttributeOf("stepscope", "PointwiseSum", 24), "");
}

}  // namespace
}  // namespace stepscope
