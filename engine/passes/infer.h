// Phase `infer`, and the shape half of `specialise`: types, symbolic shapes, and contents of small tensors.
//
// Walks the graph in order and calls every op's shape rule. Types are written into the graph; contents (shape arithmetic as
// Dim polynomials, whole tensors where every input is constant) are kept here, for fold_constants, lower_sequences and the
// gradient rules. Unknown extents become symbols "<node>.<output>.<axis>", the same on every run; unification replaces them
// by what an exporter or a contradiction-free equation names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/operators.h"
#include "engine/ops/shape_context.h"
#include "kernels/cancel.h"

namespace stepscope {

struct InferOptions {
  // Largest tensor that is computed because all its inputs are constant, in elements.
  std::int64_t foldElements = 1 << 16;
  // Types that the file declares for intermediate values and outputs; names of their dims win over fresh symbols.
  const std::map<std::string, ValueType>* declared = nullptr;
};

class Inference {
 public:
  // `operators`: what ops and kernels there are; they outlive the inference.
  Inference(Graph& graph, const Operators& operators, InferOptions options = {});
  // What is known of a graph holds for a copy of it, whose ids are the same: points a copied Inference at the copied graph.
  void rebind(Graph& graph) { graph_ = &graph; }

  const InferOptions& options() const { return options_; }
  const Operators& operators() const { return *operators_; }
  const OpRegistry& ops() const { return operators_->ops; }
  const KernelRegistry& kernels() const { return operators_->kernels; }

  // All nodes in order. Errors: the first contradiction, naming the node; kCancelled.
  Status run(const Cancel& cancel = {});
  // Whether run() came to its end and the graph was not edited since.
  bool isCurrent() const { return inferred_ == graph_->version(); }
  // One node whose inputs are inferred already.
  Status inferNode(NodeId id);

  // Whole contents when they cannot change: constants, initializers that are not floats, and what follows from them.
  const Tensor* constant(ValueId id) const;
  // The same, or the initial contents of a float initializer: what decides shapes (Resize scales …), not what may be folded.
  const Tensor* shapeConstant(ValueId id) const;
  std::shared_ptr<const Tensor> sharedConstant(ValueId id) const;
  // Says what a value holds, before nodes that read it are inferred (a batch that is bound, a value that was computed).
  void setConstant(ValueId id, std::shared_ptr<const Tensor> tensor) { facts(id).constant = std::move(tensor); }
  std::optional<Contents> contents(ValueId id) const;
  std::optional<std::vector<std::int64_t>> integers(ValueId id) const;
  std::optional<Shape> shape(ValueId id) const { return graph_->value(id).type.shape; }

  // Replaces symbols that unification solved, in all types. run() does it at its end.
  void applySubstitutions();
  const std::map<std::string, Dim>& substitutions() const { return substitutions_; }

 private:
  friend class InferShapeContext;
  struct Facts {
    std::shared_ptr<const Tensor> constant;
    std::optional<Contents> contents;
  };
  Facts& facts(ValueId id) { return facts_[id]; }
  const Facts& knownFacts(ValueId id) const;  // nothing in them where nothing is known
  void setType(ValueId id, ValueType type);
  Status evaluate(const Node& node);  // computes outputs whose inputs are all constant
  void applyDeclared(const Node& node);
  bool unify(const Dim& a, const Dim& b);
  Dim resolve(const Dim& dim) const;

  Graph* graph_;
  const Operators* operators_;
  InferOptions options_;
  std::unordered_map<ValueId, Facts> facts_;  // of the few values that have any
  std::map<std::string, Dim> substitutions_;
  std::optional<std::uint64_t> inferred_;  // version of the graph when run() ended
};

}  // namespace stepscope
