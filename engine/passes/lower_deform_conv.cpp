#include "engine/passes/lower_deform_conv.h"

#include <fmt/format.h>

#include <array>

#include "engine/passes/node_lowering.h"

namespace stepscope {
namespace {

class DeformConv : public NodeLowering {
 public:
  using NodeLowering::NodeLowering;

 private:
  // Extents and attributes of a node; [0] counts rows, [1] columns.
  struct Form {
    std::int64_t channels = 0, group = 1, offsetGroup = 1, outputs = 0;
    std::array<std::int64_t, 2> input{}, kernel{}, output{}, stride{1, 1}, dilation{1, 1}, pad{0, 0};
    std::int64_t taps() const { return kernel[0] * kernel[1]; }
  };

  std::vector<ValueId> lower() override {
    if (!is("DeformConv")) return {};
    const auto form = formOf();
    if (!form) return stay(reason_);
    const Form& f = *form;
    const std::int64_t perGroup = f.channels / f.offsetGroup;
    const DType type = graph_.value(node().input(0)).type.dtype;

    const ValueId x = emit("Reshape", {node().input(0), ints({-1, perGroup, f.input[0], f.input[1]})});
    ValueId y =
        emit("GridSample", {x, gridOf(f, type)},
             {{"align_corners", std::int64_t{0}}, {"mode", std::string("linear")}, {"padding_mode", std::string("zeros")}});
    if (node().input(4)) {
      const ValueId mask = emit("Reshape", {node().input(4), ints({-1, 1, f.taps() * f.output[0], f.output[1]})});
      y = emit("Mul", {y, mask});
    }
    y = emit("Reshape", {y, ints({-1, f.channels * f.taps(), f.output[0], f.output[1]})});
    const ValueId weight = emit("Reshape", {node().input(1), ints({f.outputs, -1, 1, 1})});
    std::vector<ValueId> operands{y, weight};
    if (node().input(3)) operands.push_back(node().input(3));
    return {emit("Conv", std::move(operands), {{"group", f.group}, {"kernel_shape", Integers{1, 1}}})};
  }

  // Where every tap of every point reads x, in GridSample's coordinates (column, row), -1..1 over the pixels' outer edges:
  // [N·offset_group, taps·oh, ow, 2].
  ValueId gridOf(const Form& f, DType type) {
    const ValueId offsets = emit("Reshape", {node().input(2), ints({-1, f.taps(), 2, f.output[0], f.output[1]})});
    const ValueId columnFirst = emit("Gather", {offsets, ints({1, 0})}, {{"axis", std::int64_t{2}}});
    const ValueId moved = emit("Transpose", {columnFirst}, {{"perm", Integers{0, 1, 3, 4, 2}}});
    const ValueId flat = emit("Reshape", {moved, ints({-1, f.taps() * f.output[0], f.output[1], 2})});
    const auto scaled = [&](double pixels, std::size_t axis) { return 2 * pixels / static_cast<double>(f.input[axis]); };
    std::vector<double> start;
    for (std::int64_t tap = 0; tap < f.taps(); ++tap)
      for (std::int64_t row = 0; row < f.output[0]; ++row)
        for (std::int64_t column = 0; column < f.output[1]; ++column) {
          const auto at = [&](std::size_t axis, std::int64_t point, std::int64_t step) {
            const auto pixel = static_cast<double>(point * f.stride[axis] - f.pad[axis] + step * f.dilation[axis]);
            return scaled(pixel + 0.5, axis) - 1;
          };
          start.push_back(at(1, column, tap % f.kernel[1]));
          start.push_back(at(0, row, tap / f.kernel[1]));
        }
    const ValueId places = constant(type, {f.taps() * f.output[0], f.output[1], 2}, start);
    return emit("Add", {emit("Mul", {flat, constant(type, {2}, {scaled(1, 1), scaled(1, 0)})}), places});
  }

  std::optional<Form> formOf() {
    const auto x = shapeOf(0), weight = shapeOf(1), offset = shapeOf(2);
    const auto say = [&](std::string reason) {
      reason_ = std::move(reason);
      return std::nullopt;
    };
    if (!isFloating(graph_.value(node().input(0)).type.dtype)) return say("the type of X is unknown or no float");
    if (!x || !weight || !offset || x->size() != 4 || weight->size() != 4 || offset->size() != 4)
      return say("the ranks of X, W and offset are unknown or not 4; expected images of two axes");
    for (const Shape* shape : {&*x, &*weight, &*offset})
      for (std::size_t i = shape == &*weight ? 0 : 1; i < 4; ++i)
        if (!(*shape)[i].known())
          return say("an extent of X, W or offset is not known before the step; expected numbers, the batch excepted");
    Form f;
    f.channels = (*x)[1].value();
    f.outputs = (*weight)[0].value();
    f.group = node().attrs.integer("group", 1);
    f.offsetGroup = node().attrs.integer("offset_group", 1);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      f.input[axis] = (*x)[2 + axis].value();
      f.kernel[axis] = (*weight)[2 + axis].value();
      f.output[axis] = (*offset)[2 + axis].value();
    }
    const Integers strides = node().attrs.integers("strides"), dilations = node().attrs.integers("dilations"),
                   pads = node().attrs.integers("pads");
    if ((!strides.empty() && strides.size() != 2) || (!dilations.empty() && dilations.size() != 2) ||
        (!pads.empty() && pads.size() != 4))
      return say("strides, dilations or pads are not those of two axes; expected 2, 2 and 4 numbers");
    for (std::size_t axis = 0; axis < 2; ++axis) {
      if (!strides.empty()) f.stride[axis] = strides[axis];
      if (!dilations.empty()) f.dilation[axis] = dilations[axis];
      if (!pads.empty()) f.pad[axis] = pads[axis];
      const std::int64_t padded = f.input[axis] + (pads.empty() ? 0 : pads[axis] + pads[2 + axis]);
      const std::int64_t points =
          f.stride[axis] < 1 ? 0 : (padded - f.dilation[axis] * (f.kernel[axis] - 1) - 1) / f.stride[axis] + 1;
      if (points < 1 || points != f.output[axis])
        return say(fmt::format("offset has extent {} along axis {}; expected the {} points of the convolution",
                               f.output[axis], 2 + axis, points));
    }
    if (f.group < 1 || f.offsetGroup < 1 || f.channels % f.group != 0 || f.channels % f.offsetGroup != 0 ||
        f.outputs % f.group != 0 || (*weight)[1].value() * f.group != f.channels)
      return say(fmt::format("{} channels of X, W {}, group {}, offset_group {}; expected multiples of the groups",
                             f.channels, shapeText(*weight), f.group, f.offsetGroup));
    if ((*offset)[1].value() != 2 * f.offsetGroup * f.taps())
      return say(fmt::format("offset has {} channels; expected {}, two for each tap of each offset group",
                             (*offset)[1].value(), 2 * f.offsetGroup * f.taps()));
    return f;
  }

  ValueId constant(DType type, Dims dims, const std::vector<double>& values) {
    const Tensor wide = Tensor::of<double>(std::move(dims), values);
    return graph_.addConstant(node().name + "/places", convertTensor(wide.view(), type));
  }

  std::string reason_;
};

}  // namespace

Status lowerDeformConv(Graph& graph, PassContext& context) { return DeformConv(graph, context).run(); }

}  // namespace stepscope
