#include "engine/passes/slice_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

PartOf refused(std::string why) {
  PartOf part;
  part.refusal = std::move(why);
  return part;
}

class Rules {
 public:
  Rules(const Graph& graph, const OpRegistry& ops, const Node& node)
      : graph_(graph), node_(node), pointwise_(ops.isPointwise(node)) {}

  PartOf part(std::size_t axis, bool paired) const {
    if (!ranked(node_.output(0))) return refused("the rank of its result is not known");
    PartOf part = alongAxis(axis);
    if (!part.refusal.empty() || !paired) return part;
    // Each place of axis 0 has its own: an operand that is taken has both axes, first and second.
    for (std::size_t i = 0; i < part.axes.size(); ++i) {
      if (!part.axes[i]) continue;
      if (*part.axes[i] != 1 || rank(node_.input(i)) < 2 || shape(node_.input(i))[0] != shape(node_.output(0))[0])
        return refused("places that differ by row would be taken of an axis that is not the second");
      if (!keepsFirst()) return refused("the first axis, by which the places differ, is moved");
    }
    return part;
  }

  PartOf rows(std::size_t merged) const {
    if (!ranked(node_.output(0))) return refused("the rank of its result is not known");
    const std::size_t rank = this->rank(node_.output(0));
    PartOf part;
    part.axes.resize(node_.inputs.size());
    if (pointwise_ || isDropout()) {
      for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
        const ValueId in = node_.inputs[i];
        if (!in || (isDropout() && i > 0)) continue;
        if (!ranked(in)) return refused(fmt::format("the rank of '{}' is not known", name(in)));
        const bool whole =
            this->rank(in) == rank && std::equal(shape(in).begin(), begin(in) + merged, shape(node_.output(0)).begin());
        if (whole)
          part.axes[i] = 0;
        else if (this->rank(in) + merged > rank)
          return refused(fmt::format("'{}' is broadcast over some of the axes that become one", name(in)));
      }
      part.draws = isDropout();
      return part;
    }
    if (isNormalised()) {
      const std::int64_t axis = normalisedAxis();
      if (axis < static_cast<std::int64_t>(merged)) return refused(fmt::format("it works along axis {}", axis));
      part.axes[0] = 0;
      return part;
    }
    if (isOp(node_, "MatMul") && ranked(node_.input(1)) && this->rank(node_.input(1)) == 2 && ranked(node_.input(0)) &&
        this->rank(node_.input(0)) == merged + 1) {
      part.axes[0] = 0;
      part.product = true;
      return part;
    }
    return refused(fmt::format("{} cannot be computed for some of its rows", node_.op));
  }

 private:
  const Shape& shape(ValueId id) const { return *graph_.value(id).type.shape; }
  bool ranked(ValueId id) const { return id && graph_.value(id).type.shape.has_value(); }
  std::size_t rank(ValueId id) const { return shape(id).size(); }
  Shape::const_iterator begin(ValueId id) const { return shape(id).begin(); }
  std::string_view name(ValueId id) const { return graph_.value(id).name; }
  bool isDropout() const { return isOp(node_, "Dropout"); }
  bool isNormalised() const {
    return isOp(node_, "LayerNormalization") || isOp(node_, "RMSNormalization") || isOp(node_, "Softmax") ||
           isOp(node_, "LogSoftmax") || isOp(node_, "Hardmax");
  }
  std::int64_t normalisedAxis() const {
    const std::int64_t axis = node_.attrs.integer("axis", -1);
    return axis < 0 ? axis + static_cast<std::int64_t>(rank(node_.output(0))) : axis;
  }
  // Whether axis 0 of every operand that has it is axis 0 of the result.
  bool keepsFirst() const {
    if (isOp(node_, "MatMul")) return rank(node_.output(0)) >= 3;
    if (isOp(node_, "Gemm") || node_.op == "FusedMatMul") return false;
    if (!isOp(node_, "Transpose")) return true;
    const auto perm = node_.attrs.integers("perm");
    return !perm.empty() && perm[0] == 0;
  }

  PartOf alongAxis(std::size_t axis) const {
    if (pointwise_) return pointwise(axis, node_.inputs.size());
    if (isDropout()) {
      PartOf part = pointwise(axis, 1);
      part.draws = true;
      return part;
    }
    if (isNormalised()) {
      if (static_cast<std::int64_t>(axis) >= normalisedAxis() && !softmaxBehind(axis))
        return refused(fmt::format("it takes places of axis {}, along which {} works", axis, node_.op));
      return first(axis);
    }
    if (isOp(node_, "MatMul")) return matmul(axis, false, false);
    if (node_.domain == kMicrosoft && node_.op == "FusedMatMul") {
      if (node_.attrs.integer("transBatchA", 0) != 0 || node_.attrs.integer("transBatchB", 0) != 0)
        return refused("a batch axis of the product is transposed");
      return matmul(axis, node_.attrs.integer("transA", 0) != 0, node_.attrs.integer("transB", 0) != 0);
    }
    if (isOp(node_, "Gemm")) return gemm(axis);
    if (isOp(node_, "Transpose")) return transposed(axis);
    if (isOp(node_, "Reshape") || isOp(node_, "Flatten") || isOp(node_, "Squeeze") || isOp(node_, "Unsqueeze"))
      return isOp(node_, "Squeeze") && !node_.input(1) ? refused("Squeeze does not say its axes") : reshaped(axis);
    return refused(fmt::format("{} is not computed in parts", node_.op));
  }

  // Softmax works along one axis alone: those behind it may be taken too.
  bool softmaxBehind(std::size_t axis) const {
    const bool one = isOp(node_, "Softmax") || isOp(node_, "LogSoftmax") || isOp(node_, "Hardmax");
    return one && static_cast<std::int64_t>(axis) > normalisedAxis();
  }

  PartOf first(std::size_t axis) const {
    PartOf part;
    part.axes.resize(node_.inputs.size());
    part.axes[0] = axis;
    return part;
  }

  // The axis of input i that lies under axis `axis` of the result; nothing where it is broadcast along it.
  Result<std::optional<std::size_t>> under(ValueId in, std::size_t axis) const {
    if (!ranked(in)) return invalid(fmt::format("the rank of '{}' is not known", name(in)));
    const std::size_t lead = rank(node_.output(0)) - rank(in);
    if (axis < lead) return std::optional<std::size_t>();
    const Dim &own = shape(in)[axis - lead], &whole = shape(node_.output(0))[axis];
    if (own == whole) return std::optional(axis - lead);
    if (own == Dim(1)) return std::optional<std::size_t>();
    return invalid(
        fmt::format("axis {} of '{}' is {} and that of the result {}", axis - lead, name(in), own.text(), whole.text()));
  }

  PartOf pointwise(std::size_t axis, std::size_t operands) const {
    PartOf part;
    part.axes.resize(node_.inputs.size());
    for (std::size_t i = 0; i < operands; ++i) {
      if (!node_.inputs[i]) continue;
      const auto own = under(node_.inputs[i], axis);
      if (!own) return refused(own.error().message);
      part.axes[i] = *own;
    }
    return part;
  }

  PartOf matmul(std::size_t axis, bool transA, bool transB) const {
    const ValueId a = node_.input(0), b = node_.input(1), y = node_.output(0);
    if (!ranked(a) || !ranked(b) || rank(a) < 2 || rank(b) < 2) return refused("an operand of the product is a vector");
    PartOf part;
    part.product = true;
    part.axes.resize(node_.inputs.size());
    const std::size_t last = rank(y) - 1;
    if (axis == last) {
      part.axes[1] = rank(b) - (transB ? 2 : 1);
    } else if (axis == last - 1) {
      part.axes[0] = rank(a) - (transA ? 1 : 2);
    } else {
      for (const std::size_t i : {0u, 1u}) {
        const auto own = under(node_.input(i), axis);
        if (!own) return refused(own.error().message);
        part.axes[i] = *own;
      }
    }
    return part;
  }

  PartOf gemm(std::size_t axis) const {
    PartOf part;
    part.product = true;
    part.axes.resize(node_.inputs.size());
    const bool transA = node_.attrs.integer("transA", 0) != 0, transB = node_.attrs.integer("transB", 0) != 0;
    if (axis == 0)
      part.axes[0] = transA ? 1 : 0;
    else
      part.axes[1] = transB ? 0 : 1;
    if (node_.input(2)) {
      const auto own = under(node_.input(2), axis);
      if (!own) return refused(own.error().message);
      part.axes[2] = *own;
    }
    return part;
  }

  PartOf transposed(std::size_t axis) const {
    const auto perm = node_.attrs.integers("perm");  // absent: the axes in reverse
    PartOf part = first(perm.empty() ? rank(node_.output(0)) - 1 - axis : static_cast<std::size_t>(perm[axis]));
    part.view = true;
    return part;
  }

  // The axis keeps its places where as many elements stand before it, in it and behind it as in the input.
  PartOf reshaped(std::size_t axis) const {
    const ValueId x = node_.input(0), y = node_.output(0);
    if (!ranked(x)) return refused("the rank of its input is not known");
    const Shape &from = shape(x), &to = shape(y);
    const Dim before = productOf(to, 0, axis), behind = productOf(to, axis + 1, to.size());
    for (std::size_t b = 0; b < from.size(); ++b) {
      if (from[b] != to[axis] || productOf(from, 0, b) != before || productOf(from, b + 1, from.size()) != behind) continue;
      PartOf part = first(b);
      part.view = true;
      return part;
    }
    return refused(fmt::format("axis {} of {} is no axis of {}", axis, shapeText(to), shapeText(from)));
  }

  const Graph& graph_;
  const Node& node_;
  const bool pointwise_;
};

}  // namespace

std::size_t PartOf::taken() const {
  return static_cast<std::size_t>(std::ranges::count_if(axes, [](const auto& axis) { return axis.has_value(); }));
}

PartOf partOf(const Graph& graph, const OpRegistry& ops, const Node& node, std::size_t axis, bool paired) {
  return Rules(graph, ops, node).part(axis, paired);
}

PartOf rowsOf(const Graph& graph, const OpRegistry& ops, const Node& node, std::size_t merged) {
  return Rules(graph, ops, node).rows(merged);
}

std::optional<std::size_t> mergedAxes(const Graph& graph, const Node& node) {
  if (!isOp(node, "Reshape") && !isOp(node, "Flatten")) return std::nullopt;
  const auto &from = graph.value(node.input(0)).type.shape, &to = graph.value(node.output(0)).type.shape;
  if (!from || !to || to->empty() || from->size() <= to->size()) return std::nullopt;
  const std::size_t merged = from->size() - to->size() + 1;
  if (!std::equal(to->begin() + 1, to->end(), from->begin() + static_cast<std::ptrdiff_t>(merged))) return std::nullopt;
  if ((*to)[0] != productOf(*from, 0, merged)) return std::nullopt;
  return merged;
}

std::optional<std::vector<std::int64_t>> reshapeTarget(const Shape& from, const Shape& to) {
  std::vector<std::int64_t> target;
  bool open = false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].known() && to[i].value() != 0) {
      target.push_back(to[i].value());
    } else if (i < from.size() && from[i] == to[i]) {
      target.push_back(0);
    } else if (!open) {
      open = true;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return target;
}

}  // namespace stepscope
