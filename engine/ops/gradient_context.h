// What a gradient rule sees and emits. A rule is about ten lines of public ops:
//
//   Status gradient(GradientContext& g) {                 // Mul: y = a * b
//     if (g.needs(0)) g.setGradient(0, g.reduceTo(g.mul(g.dy(0), g.x(1)), g.x(0)));
//     if (g.needs(1)) g.setGradient(1, g.reduceTo(g.mul(g.dy(0), g.x(0)), g.x(1)));
//     return {};
//   }
//
// Ranks and dtypes of forward values are known here; extents may still be symbols, so a rule asks for shapes with shapeOf
// (a Shape node that `specialise` folds) and never looks at numbers it does not need. Every node that is emitted belongs
// to the backward phase, with provenance to the forward node, and its value types are inferred at once.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/op_def.h"

namespace stepscope {

class GradientContext {
 public:
  virtual ~GradientContext() = default;

  // --- the forward node
  virtual const Node& node() const = 0;
  virtual const OpDef& definition() const = 0;  // of the node's op: `definition().user` is the op's own data
  const Attributes& attrs() const { return node().attrs; }
  virtual ValueId x(std::size_t i) const = 0;  // input i (invalid when absent)
  virtual ValueId y(std::size_t i) const = 0;  // output i; must exist
  // Output i of the forward node, added to it when the exporter left it out (mean, log-probabilities, indices …).
  virtual ValueId ensureOutput(std::size_t i) = 0;
  // Gradient that arrives at output i; invalid when none does. dyOrZeros gives zeros shaped like y(i) then.
  virtual ValueId dy(std::size_t i) const = 0;
  virtual ValueId dyOrZeros(std::size_t i) = 0;
  // Whether input i wants a gradient (differentiable edge, float, leads to a trained parameter).
  virtual bool needs(std::size_t i) const = 0;
  virtual void setGradient(std::size_t i, ValueId gradient) = 0;
  // The model's local opset-independent facts.
  DType dtype(ValueId v) const { return typeOf(v).dtype; }
  Result<std::size_t> rank(ValueId v) const;  // error when the rank is unknown, naming the value
  const std::optional<Shape>& shape(ValueId v) const { return typeOf(v).shape; }
  virtual const ValueType& typeOf(ValueId v) const = 0;
  virtual const Tensor* constant(ValueId v) const = 0;  // contents when constant, else null
  tl::unexpected<Error> error(std::string message) const;

  // --- emitting. Domain "" is ONNX at kInternalOpset.
  virtual std::vector<ValueId> emit(std::string_view domain, std::string_view op, std::vector<ValueId> inputs,
                                    std::size_t outputs, Attributes attrs = {}) = 0;
  ValueId op(std::string_view name, std::vector<ValueId> inputs, Attributes attrs = {});        // ONNX, one output
  ValueId internal(std::string_view name, std::vector<ValueId> inputs, Attributes attrs = {});  // domain stepscope

  // --- constants; equal ones are shared within the graph
  virtual ValueId constantTensor(Tensor data) = 0;
  ValueId scalar(double value, ValueId like);      // rank 0, dtype of `like`
  ValueId ints(std::vector<std::int64_t> values);  // rank 1, int64
  ValueId intScalar(std::int64_t value);           // rank 0, int64

  // --- short forms
  ValueId add(ValueId a, ValueId b) { return op("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op("Div", {a, b}); }
  ValueId neg(ValueId a) { return op("Neg", {a}); }
  ValueId mul(ValueId a, double s) { return mul(a, scalar(s, a)); }
  ValueId add(ValueId a, double s) { return add(a, scalar(s, a)); }
  ValueId shapeOf(ValueId v);                   // Shape node
  ValueId dimOf(ValueId v, std::int64_t axis);  // rank 1, one element: extent of one axis
  ValueId castLike(ValueId v, ValueId like);    // Cast to like's dtype
  ValueId where(ValueId condition, ValueId a, ValueId b) { return op("Where", {condition, a, b}); }
  ValueId zerosLike(ValueId v);                  // Expand(0, Shape(v))
  ValueId reshapeLike(ValueId v, ValueId like);  // Reshape(v, Shape(like))
  ValueId expandTo(ValueId v, ValueId like);     // Expand(v, Shape(like))
  ValueId transpose(ValueId v, std::vector<std::int64_t> perm);
  ValueId unsqueeze(ValueId v, std::vector<std::int64_t> axes);
  ValueId squeeze(ValueId v, std::vector<std::int64_t> axes);
  ValueId reduceSum(ValueId v, std::vector<std::int64_t> axes, bool keepdims);
  // Sums `v` over the axes along which `like` was broadcast: stepscope.ReduceToShape(v, Shape(like)); the value itself when
  // the shapes are already known to be equal.
  ValueId reduceTo(ValueId v, ValueId like);
};

}  // namespace stepscope
