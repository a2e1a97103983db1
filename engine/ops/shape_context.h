// What a shape rule sees of its node, and how it answers.
//
// The same rule serves two moments: phase `infer`, where dims may be symbols and contents unknown, and `specialise`, where
// the batch has made every dim a number. A rule therefore computes with Dim and asks for contents, and leaves an output
// without shape (unknown rank) or with fresh symbols (known rank) when it cannot know; it fails only on real contradictions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/op_def.h"

namespace stepscope {

// What is known about the contents of a small integer tensor: one Dim per element, row-major, rank 0 or 1 only.
// A whole constant tensor is available through constant().
using Contents = std::vector<Dim>;

class ShapeContext {
 public:
  virtual ~ShapeContext() = default;

  // --- the node
  const Node& node() const { return *node_; }
  const OpDef& op() const { return *op_; }  // of the node: `op().user` is the op's own data
  const Attributes& attrs() const { return node_->attrs; }
  std::size_t inputCount() const { return node_->inputs.size(); }
  std::size_t outputCount() const { return node_->outputs.size(); }
  bool hasInput(std::size_t i) const { return node_->input(i).valid(); }
  bool hasOutput(std::size_t i) const { return node_->output(i).valid(); }

  // --- inputs
  virtual const ValueType& inputType(std::size_t i) const = 0;  // kUndefined dtype for an absent input
  DType inputDType(std::size_t i) const { return inputType(i).dtype; }
  const std::optional<Shape>& inputShape(std::size_t i) const { return inputType(i).shape; }
  bool rankKnown(std::size_t i) const { return inputShape(i).has_value(); }
  // Whole contents when the input is a constant (initializers that are trained are not), else null.
  virtual const Tensor* constant(std::size_t i) const = 0;
  // Contents as dims when known, for integer tensors of rank 0 or 1.
  virtual std::optional<Contents> contents(std::size_t i) const = 0;
  // Contents as numbers when all are known (from constant() or contents()).
  std::optional<std::vector<std::int64_t>> integers(std::size_t i) const;

  // --- outputs
  void setOutput(std::size_t i, DType dtype, std::optional<Shape> shape);
  virtual void setOutputType(std::size_t i, ValueType type) = 0;
  virtual void setContents(std::size_t i, Contents contents) = 0;  // data propagation, for shape arithmetic
  // A symbol that no other value has, stable between runs: "<node>.<output>.<axis>".
  virtual Dim freshDim(std::size_t output, std::size_t axis) = 0;
  // A shape of `rank` fresh symbols.
  Shape freshShape(std::size_t output, std::size_t rank);

  // --- common parts of rules
  // Two dims that must be equal: unifies a symbol with the other side, fails on different numbers.
  virtual Status unify(const Dim& a, const Dim& b, std::string_view what) = 0;
  // Unifies shapes axis by axis. `what` completes "…: <what> [2, 3] and [2, 4] differ".
  Status unifyShapes(const Shape& a, const Shape& b, std::string_view what);
  // Multidirectional broadcasting; a symbol against 1 gives the symbol, two different symbols are assumed equal to the first
  // at `infer` (numbers decide at `specialise`).
  Result<Shape> broadcast(const Shape& a, const Shape& b);
  // Maps -rank..rank-1 to 0..rank-1, or fails "axis 3 out of range for shape [2, 8]; valid -2..1".
  Result<std::size_t> axis(std::int64_t axis, const Shape& shape) const;
  // Error whose message starts with the node's label.
  tl::unexpected<Error> error(std::string message) const;

 protected:
  ShapeContext(const Node& node, const OpDef& op) : node_(&node), op_(&op) {}

 private:
  const Node* node_;
  const OpDef* op_;
};

// --- whole rules that many ops share
namespace shape_rules {
Status sameAsInput0(ShapeContext& c);    // output 0 = type and shape of input 0
Status broadcastAll(ShapeContext& c);    // output 0 = input 0's dtype, all inputs broadcast together
Status broadcastBool(ShapeContext& c);   // the same with a bool result
Status boolLikeInput0(ShapeContext& c);  // bool with the shape of input 0
}  // namespace shape_rules

}  // namespace stepscope
