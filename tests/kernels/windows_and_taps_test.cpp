// Windows over an image beside the reference kernels in f64 (LpPool, Col2Im, MaxUnpool), and places that come with the data
// (GridSample, RoiAlign).
#include <algorithm>
#include <array>
#include <numeric>

#include "tests/kernels/trial.h"

namespace stepscope {
namespace {

class Windows : public CpuKernels {
 protected:
  struct Shape {
    Dims x, y;
    Attributes attrs;
    Ints kernel;
  };
  Shape anyWindow(std::int64_t rank, bool ceil) {
    Shape s{{between(1, 3), between(1, 5)}, {}, {}, {}};
    s.y = s.x;
    Ints strides, dilations, pads(static_cast<std::size_t>(2 * rank));
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t k = between(1, 3), dilation = between(1, 2), stride = between(1, 3), extent = between(6, 23),
                         begin = between(0, k - 1), end = between(0, k - 1);
      const std::int64_t room = extent + begin + end - (k - 1) * dilation - 1;
      std::int64_t out = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
      if (ceil && (out - 1) * stride >= extent + begin) --out;
      s.x.push_back(extent);
      s.y.push_back(out);
      s.kernel.push_back(k);
      strides.push_back(stride);
      dilations.push_back(dilation);
      pads[static_cast<std::size_t>(i)] = begin;
      pads[static_cast<std::size_t>(rank + i)] = end;
    }
    s.attrs = {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    return s;
  }
  Tensor uniform(Dims dims, float low, float high) {
    Tensor tensor(DType::kF32, std::move(dims));
    std::uniform_real_distribution<float> draw(low, high);
    for (float& value : tensor.as<float>()) value = draw(engine_);
    return tensor;
  }
  // Beside the reference, and the same bits whatever the number of threads.
  void check(const Trial& trial) {
    compare(trial);
    expectSameBitsForAnyThreads(trial);
  }
};

TEST_F(Windows, LpPoolsAndTheirGradientsOfRandomShapes) {
  for (int round = 0; round < 40; ++round) {
    const std::int64_t ceil = between(0, 1);
    Shape s = anyWindow(between(1, 3), ceil != 0);
    s.attrs.set("kernel_shape", s.kernel);
    s.attrs.set("ceil_mode", ceil);
    s.attrs.set("p", between(1, 2));
    const Trial forward{"", "LpPool", s.attrs, {random(s.x)}, {s.y}};
    check(forward);
    const auto made = execute(Backend::kReference, forward, false);
    ASSERT_TRUE(made.has_value());
    check({"stepscope", "LpPoolGrad", s.attrs, {random(s.y), forward.inputs[0], made->outputs[0]}, {s.x}});
  }
}

TEST_F(Windows, TheGradientOfAGlobalLpPoolCoversThePlane) {
  for (const Dims& x : {Dims{2, 3, 7, 9}, Dims{1, 5, 33}, Dims{3, 2, 1}, Dims{2, 2, 3, 4, 5}})
    for (const std::int64_t power : {1, 2}) {
      Dims y = x;
      std::fill(y.begin() + 2, y.end(), 1);
      const Tensor values = random(x);
      const auto made = execute(Backend::kReference, {"", "GlobalLpPool", {{"p", power}}, {values}, {y}}, false);
      ASSERT_TRUE(made.has_value());
      check({"stepscope", "LpPoolGrad", {{"p", power}}, {random(y), values, made->outputs[0]}, {x}});
    }
}

TEST_F(Windows, AnLpPoolOfZerosHasNoGradient) {
  const Trial trial{"stepscope",
                    "LpPoolGrad",
                    {{"kernel_shape", Ints{2}}},
                    {random({1, 1, 3}), Tensor(DType::kF32, {1, 1, 4}), Tensor(DType::kF32, {1, 1, 3})},
                    {{1, 1, 4}}};
  const auto made = execute(Backend::kCpu, trial, false);
  ASSERT_TRUE(made.has_value());
  for (const float value : made->outputs[0].as<float>()) EXPECT_EQ(value, 0);
}

TEST_F(Windows, ColumnsIntoImagesAndBackOfRandomShapes) {
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rank = between(1, 3);
    const Shape s = anyWindow(rank, false);
    const Dims extents(s.x.begin() + 2, s.x.end()), counts(s.y.begin() + 2, s.y.end());
    const Dims columns{s.x[0], s.x[1] * elementCount(s.kernel), elementCount(counts)};
    check({"", "Col2Im", s.attrs, {random(columns), Tensor::ints(extents), Tensor::ints(s.kernel)}, {s.x}});
    check({"stepscope", "Col2ImGrad", s.attrs, {random(s.x), Tensor::ints(columns), Tensor::ints(s.kernel)}, {columns}});
  }
}

TEST_F(Windows, UnpooledValuesStandWhereTheirIndicesSay) {
  for (int round = 0; round < 30; ++round) {
    Dims x{between(1, 3), between(1, 5)}, y = x;
    Ints kernel, strides;
    for (std::int64_t i = between(1, 3); i > 0; --i) {
      x.push_back(between(1, 9));
      strides.push_back(between(1, 3));
      kernel.push_back(strides.back() + between(0, 1));
      y.push_back((x.back() - 1) * strides.back() + kernel.back());
    }
    const std::int64_t small = elementCount(x) / (x[0] * x[1]), large = elementCount(y) / (x[0] * x[1]);
    Tensor indices(DType::kI64, x);
    for (std::int64_t i = 0; i < indices.elements(); ++i)
      indices.as<std::int64_t>()[static_cast<std::size_t>(i)] = i / small * large + between(0, large - 1);
    const Attributes attrs{{"kernel_shape", kernel}, {"strides", strides}};
    check({"", "MaxUnpool", attrs, {random(x), indices}, {y}});
    check({"stepscope", "MaxUnpoolGrad", attrs, {random(y), indices}, {x}});
  }
}

TEST_F(Windows, AnUnpoolThatLeavesItsChannelIsServedAndAStrayIndexNamed) {
  const Attributes attrs{{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  Tensor indices(DType::kI64, {1, 2, 1});
  indices.as<std::int64_t>()[0] = 3;  // in the second channel
  indices.as<std::int64_t>()[1] = 0;
  compare({"", "MaxUnpool", attrs, {random({1, 2, 1}), indices}, {{1, 2, 2}}});
  indices.as<std::int64_t>()[1] = 4;
  const auto made = execute(Backend::kCpu, {"", "MaxUnpool", attrs, {random({1, 2, 1}), indices}, {{1, 2, 2}}}, false);
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("index 4"), std::string::npos) << made.error().message;
}

TEST_F(Windows, GridsSampleAndTheirGradientsOfRandomShapes) {
  const char* modes[] = {"nearest", "linear", "cubic"};
  const char* paddings[] = {"zeros", "border", "reflection"};
  for (int round = 0; round < 72; ++round) {
    const std::int64_t rank = round % 9 == 8 ? 3 : between(1, 2);
    Dims x{between(1, 3), between(1, round % 4 == 3 ? 40 : 6)}, y = x, grid{x[0]};
    for (std::int64_t i = 0; i < rank; ++i) {
      x.push_back(between(1, 9));
      y.push_back(between(1, rank == 2 && round % 6 == 5 ? 50 : 7));
      grid.push_back(y.back());
    }
    grid.push_back(rank);
    const Attributes attrs{{"mode", std::string(modes[round % 3])},
                           {"padding_mode", std::string(paddings[round / 3 % 3])},
                           {"align_corners", between(0, 1)}};
    const Tensor image = random(x), places = uniform(grid, -1.4F, 1.4F), slopes = random(y);
    check({"", "GridSample", attrs, {image, places}, {y}});
    check({"stepscope", "GridSampleInputGrad", attrs, {slopes, places, Tensor::ints(x)}, {x}});
    check({"stepscope", "GridSampleGridGrad", attrs, {slopes, image, places}, {grid}});
  }
}

// A corner outside must not be read, nor be multiplied with 0: an infinity elsewhere in the plane does not reach the point.
TEST_F(Windows, APointOutsideIsZeroBesideAnInfinity) {
  Tensor image(DType::kF32, {1, 1, 2, 2}), places(DType::kF32, {1, 1, 2, 2});
  for (float& value : image.as<float>()) value = INFINITY;
  const float at[] = {-9, -9, NAN, 0};
  std::copy(std::begin(at), std::end(at), places.as<float>().begin());
  const auto made = execute(Backend::kCpu, {"", "GridSample", {}, {image, places}, {{1, 1, 1, 2}}}, false);
  ASSERT_TRUE(made.has_value());
  EXPECT_NE(made->implementation, "reference");
  EXPECT_EQ(made->outputs[0].as<float>()[0], 0);
  EXPECT_EQ(made->outputs[0].as<float>()[1], 0);
}

TEST_F(Windows, RegionsAlignAndTheirGradientsOfRandomShapes) {
  for (int round = 0; round < 48; ++round) {
    const Dims x{between(1, 3), between(1, round % 4 == 3 ? 40 : 6), between(1, 14), between(1, 14)};
    const Dims y{between(1, 5), x[1], between(1, round % 8 == 7 ? 20 : 4), between(1, round % 8 == 7 ? 20 : 4)};
    Tensor boxes(DType::kF32, {y[0], 4}), images(DType::kI64, {y[0]});
    for (std::int64_t r = 0; r < y[0]; ++r) {
      images.as<std::int64_t>()[static_cast<std::size_t>(r)] = between(0, x[0] - 1);
      const Tensor corner = uniform({2}, -2, 20), size = uniform({2}, round % 5 == 0 ? -3 : 0, 16);
      for (std::size_t k = 0; k < 2; ++k) {
        boxes.as<float>()[static_cast<std::size_t>(r) * 4 + k] = corner.as<float>()[k];
        boxes.as<float>()[static_cast<std::size_t>(r) * 4 + 2 + k] = corner.as<float>()[k] + size.as<float>()[k];
      }
    }
    const Attributes attrs{
        {"mode", std::string(round % 3 == 2 ? "max" : "avg")},
        {"sampling_ratio", std::int64_t{round % 6}},
        {"spatial_scale", round % 2 ? 0.5F : 1.0F},
        {"coordinate_transformation_mode", std::string(round % 4 == 1 ? "output_half_pixel" : "half_pixel")}};
    const Trial forward{"", "RoiAlign", attrs, {random(x), boxes, images}, {y}};
    if (round % 3 == 2) {
      compare(forward, false);  // the largest neighbour: the reference kernel serves
      continue;
    }
    check(forward);
    check({"stepscope", "RoiAlignGrad", attrs, {random(y), boxes, images, Tensor::ints(x)}, {x}});
  }
}

TEST_F(Windows, ARegionOfAnImageThatIsNotThereIsNamed) {
  Tensor images(DType::kI64, {1});
  images.as<std::int64_t>()[0] = 7;
  const auto made =
      execute(Backend::kCpu, {"", "RoiAlign", {}, {random({2, 1, 4, 4}), random({1, 4}), images}, {{1, 1, 2, 2}}}, false);
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("batch index 7"), std::string::npos) << made.error().message;
}

TEST_F(Windows, AffineGridsOfTwoAndThreeAxes) {
  for (int round = 0; round < 20; ++round) {
    const std::int64_t axes = 2 + round % 2, batch = between(1, 3);
    Dims grid{batch};
    for (std::int64_t i = 0; i < axes; ++i) grid.push_back(between(1, 40));
    grid.push_back(axes);
    Ints size{batch, 3};
    size.insert(size.end(), grid.begin() + 1, grid.end() - 1);
    check({"",
           "AffineGrid",
           {{"align_corners", between(0, 1)}},
           {random({batch, axes, axes + 1}), Tensor::ints(size)},
           {grid}});
  }
}

TEST_F(Windows, AnEmptyBatchIsServed) {
  const Attributes pool{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const Tensor none(DType::kI64, {0});
  compare({"", "LpPool", pool, {random({0, 3, 4, 4})}, {{0, 3, 2, 2}}}, false);
  compare(
      {"stepscope", "LpPoolGrad", pool, {random({0, 3, 2, 2}), random({0, 3, 4, 4}), random({0, 3, 2, 2})}, {{0, 3, 4, 4}}},
      false);
  compare({"", "Col2Im", {}, {random({0, 12, 9}), Tensor::ints(Ints{4, 4}), Tensor::ints(Ints{2, 2})}, {{0, 3, 4, 4}}},
          false);
  compare({"", "MaxUnpool", pool, {random({0, 3, 2, 2}), Tensor(DType::kI64, {0, 3, 2, 2})}, {{0, 3, 4, 4}}}, false);
  compare({"", "GridSample", {}, {random({0, 3, 4, 4}), random({0, 2, 2, 2})}, {{0, 3, 2, 2}}}, false);
  compare({"stepscope",
           "GridSampleInputGrad",
           {},
           {random({2, 3, 0, 2}), random({2, 0, 2, 2}), Tensor::ints(Ints{2, 3, 4, 4})},
           {{2, 3, 4, 4}}},
          false);
  compare({"", "RoiAlign", {}, {random({2, 3, 4, 4}), random({0, 4}), none}, {{0, 3, 2, 2}}}, false);
  compare({"stepscope",
           "RoiAlignGrad",
           {},
           {random({0, 3, 2, 2}), random({0, 4}), none, Tensor::ints(Ints{2, 3, 4, 4})},
           {{2, 3, 4, 4}}},
          false);
  compare({"", "LRN", {{"size", std::int64_t{3}}}, {random({2, 0, 4})}, {{2, 0, 4}}}, false);
  for (const char* op : {"Hardmax", "LpNormalization", "Shrink", "RandomUniformLike"})
    compare({"", op, {}, {random({3, 0})}, {{3, 0}}}, false);
}

}  // namespace
}  // namespace stepscope
