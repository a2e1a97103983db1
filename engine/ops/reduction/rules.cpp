#include "engine/ops/reduction/rules.h"

#include <algorithm>

namespace stepscope::reduction_rules {
namespace {

// Which axes go; nothing when the contents of `axes` are not known.
Result<std::optional<std::vector<bool>>> reducedAxes(ShapeContext& c, const Shape& x) {
  std::optional<std::vector<std::int64_t>> axes = std::vector<std::int64_t>{};
  if (c.hasInput(1)) axes = c.integers(1);
  if (!axes) return std::nullopt;
  const bool noop = c.attrs().integer("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(x.size(), axes->empty() && !noop);
  for (const std::int64_t wish : *axes) {
    SS_ASSIGN(const std::size_t axis, c.axis(wish, x));
    if (reduced[axis]) return c.error("axis " + std::to_string(wish) + " is given twice; expected distinct axes");
    reduced[axis] = true;
  }
  return reduced;
}

}  // namespace

Status inferReduce(ShapeContext& c) {
  SS_TRY(expectOperands(c, 1));
  const DType dtype = c.inputDType(0);
  const bool keep = c.attrs().integer("keepdims", 1) != 0;
  if (!c.rankKnown(0)) {
    c.setOutput(0, dtype, std::nullopt);
    return {};
  }
  const Shape x = *c.inputShape(0);
  SS_ASSIGN(const auto reduced, reducedAxes(c, x));
  if (!reduced) {
    std::optional<Shape> shape;
    if (keep)
      shape = c.freshShape(0, x.size());
    else if (c.rankKnown(1) && c.inputShape(1)->size() == 1 && (*c.inputShape(1))[0].known()) {
      const std::int64_t count = (*c.inputShape(1))[0].value();
      if (count < 0 || count > static_cast<std::int64_t>(x.size()))
        return c.error(std::to_string(count) + " axes for shape " + shapeText(x) + "; expected at most its rank");
      if (count > 0) shape = c.freshShape(0, x.size() - static_cast<std::size_t>(count));
    }
    c.setOutput(0, dtype, shape);
    return {};
  }
  Shape y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(*reduced)[i])
      y.push_back(x[i]);
    else if (keep)
      y.emplace_back(1);
  }
  c.setOutput(0, dtype, y);
  return {};
}

Status inferReduceContents(ShapeContext& c, Dim (*combine)(const Dim&, const Dim&)) {
  SS_TRY(inferReduce(c));
  if (!isInteger(c.inputDType(0)) || !c.rankKnown(0)) return {};
  const auto contents = c.contents(0);
  if (!contents) return {};
  SS_ASSIGN(const auto reduced, reducedAxes(c, *c.inputShape(0)));
  if (!reduced) return {};
  if (std::find(reduced->begin(), reduced->end(), true) == reduced->end()) {
    c.setContents(0, *contents);
  } else if (!contents->empty()) {
    Dim total = contents->front();
    for (std::size_t i = 1; i < contents->size(); ++i) total = combine(total, (*contents)[i]);
    c.setContents(0, {total});
  }
  return {};
}

Status inferArgReduce(ShapeContext& c) {
  SS_TRY(expectOperands(c, 1));
  if (!c.rankKnown(0)) {
    c.setOutput(0, DType::kI64, std::nullopt);
    return {};
  }
  Shape y = *c.inputShape(0);
  SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), y));
  if (c.attrs().integer("keepdims", 1) != 0)
    y[axis] = 1;
  else
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
  c.setOutput(0, DType::kI64, y);
  return {};
}

ValueId unreduced(GradientContext& g, ValueId v) {
  // Without axes everything was reduced (a scalar broadcasts) or nothing.
  if (g.attrs().integer("keepdims", 1) != 0 || !g.x(1).valid()) return v;
  return g.op("Unsqueeze", {v, g.x(1)});
}

ValueId reduceAlike(GradientContext& g, std::string_view op, ValueId v) {
  Attributes attrs{{"keepdims", std::int64_t{1}}, {"noop_with_empty_axes", g.attrs().integer("noop_with_empty_axes", 0)}};
  std::vector<ValueId> inputs{v};
  if (g.x(1).valid()) inputs.push_back(g.x(1));
  return g.op(op, std::move(inputs), std::move(attrs));
}

Status extremeGradient(GradientContext& g) {
  const ValueId chosen = g.op("Equal", {g.x(0), unreduced(g, g.y(0))});
  const ValueId share = g.div(unreduced(g, g.dy(0)), reduceAlike(g, "ReduceSum", g.castLike(chosen, g.x(0))));
  g.setGradient(0, g.where(chosen, share, g.scalar(0, g.x(0))));
  return {};
}

Status expectInputs(ShapeContext& c, std::size_t inputs) {
  for (std::size_t i = 0; i < inputs; ++i)
    if (!c.hasInput(i))
      return c.error("input " + std::to_string(i) + " is absent; expected " + std::to_string(inputs) + " inputs");
  return {};
}

Status expectOperands(ShapeContext& c, std::size_t inputs) {
  SS_TRY(expectInputs(c, inputs));
  if (!c.hasOutput(0)) return c.error("output 0 is absent; expected one");
  return {};
}

Status expectFloat(ShapeContext& c, std::size_t input, std::string_view what) {
  const DType dtype = c.inputDType(input);
  if (!c.hasInput(input) || dtype == DType::kUndefined || isFloating(dtype)) return {};
  return c.error(std::string(what) + " is " + std::string(dtypeName(dtype)) + "; expected a float type");
}

Status expectSameDType(ShapeContext& c, std::size_t i, std::size_t j) {
  const DType a = c.inputDType(i), b = c.inputDType(j);
  if (!c.hasInput(i) || !c.hasInput(j) || a == b || a == DType::kUndefined || b == DType::kUndefined) return {};
  return c.error("inputs " + std::to_string(i) + " and " + std::to_string(j) + " are " + std::string(dtypeName(a)) +
                 " and " + std::string(dtypeName(b)) + "; expected one type");
}

Status expectVector(ShapeContext& c, std::size_t input, const Dim& extent, std::string_view what) {
  if (!c.hasInput(input) || !c.rankKnown(input)) return {};
  const Shape shape = *c.inputShape(input);
  if (shape.size() != 1) return c.error(std::string(what) + " has shape " + shapeText(shape) + "; expected a vector");
  return c.unify(shape[0], extent, what);
}

Status expectNormalised(ShapeContext& c, std::size_t input, const Shape& x, std::size_t axis, std::string_view what) {
  if (!c.hasInput(input) || !c.rankKnown(input)) return {};
  const Shape shape = *c.inputShape(input);
  const auto first = std::find_if(shape.begin(), shape.end(), [](const Dim& d) { return !(d == Dim(1)); });
  const auto count = static_cast<std::size_t>(shape.end() - first);
  if (count > x.size() - axis)
    return c.error(std::string(what) + " has shape " + shapeText(shape) + "; expected the axes of " + shapeText(x) +
                   " from " + std::to_string(axis) + " on");
  for (std::size_t i = 0; i < count; ++i)
    SS_TRY(c.unify(x[x.size() - count + i], first[static_cast<std::ptrdiff_t>(i)], what));
  return {};
}

DType statisticsType(const ShapeContext& c) {
  if (c.inputDType(0) == DType::kF64) return DType::kF64;
  const auto stash = dtypeFromOnnx(static_cast<int>(c.attrs().integer("stash_type", 1)));
  return stash && isFloating(*stash) ? *stash : DType::kF32;
}

ValueId statisticsGradient(GradientContext& g, ValueId mean, ValueId inverse, ValueId dmean, ValueId dinverse) {
  if (!dmean.valid() && !dinverse.valid()) return {};
  ValueId sum = dmean;
  if (dinverse.valid()) {
    const ValueId x = g.castLike(g.x(0), inverse), centred = mean.valid() ? g.sub(x, mean) : x;
    const ValueId along = g.neg(g.mul(g.mul(dinverse, g.mul(inverse, g.mul(inverse, inverse))), centred));
    sum = sum.valid() ? g.add(sum, along) : along;
  }
  // Where there is no row there is nothing to divide: avoid 0 / 0 in integers.
  const ValueId rows = g.op("Max", {g.op("Size", {inverse}), g.intScalar(1)});
  const ValueId count = g.castLike(g.div(g.op("Size", {g.x(0)}), rows), inverse);
  return g.castLike(g.expandTo(g.div(sum, count), g.x(0)), g.x(0));
}

void normalisationGradient(GradientContext& g, std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
                           ValueId more) {
  if (!g.dy(0).valid()) {
    if (g.needs(0) && more.valid()) g.setGradient(0, more);
    return;
  }
  const bool bias = g.x(2).valid() && g.needs(2);
  const std::size_t outputs = bias ? 3 : g.needs(1) ? 2 : 1;
  if (outputs == 1 && !g.needs(0)) return;
  const std::vector<ValueId> gradients = g.emit(kInternalDomain, op, std::move(inputs), outputs, std::move(attrs));
  if (g.needs(0)) g.setGradient(0, more.valid() ? g.add(gradients[0], more) : gradients[0]);
  if (g.needs(1)) g.setGradient(1, gradients[1]);
  if (bias) g.setGradient(2, gradients[2]);
}

Status inferNormalisationGrad(ShapeContext& c, std::size_t inputs, std::size_t dtypeOf) {
  SS_TRY(expectInputs(c, inputs));
  SS_TRY(expectSameDType(c, 0, dtypeOf));
  if (c.hasOutput(0)) c.setOutput(0, c.inputDType(1), c.inputShape(1));
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(2), c.inputShape(2));
  return {};
}

Status inferAlongAxis(ShapeContext& c) {
  SS_TRY(expectOperands(c, 1));
  SS_TRY(expectFloat(c, 0, "the input"));
  if (c.rankKnown(0) && !c.inputShape(0)->empty()) SS_TRY(c.axis(c.attrs().integer("axis", -1), *c.inputShape(0)));
  return shape_rules::sameAsInput0(c);
}

Status inferSoftmaxGrad(ShapeContext& c) {
  SS_TRY(expectOperands(c, 2));
  SS_TRY(expectSameDType(c, 0, 1));
  if (c.rankKnown(0) && c.rankKnown(1)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(1), "dy and y"));
  return inferAlongAxis(c);
}

}  // namespace stepscope::reduction_rules
