// Where the numbers of padded tokens go in a graph, and whether anything that the loss depends on reads them.
//
// Follows them from the embeddings. At every axis of positions a value holds, at the places of padded tokens: anything; what
// a mask made so low that Softmax gives 0; zeros; or, of a value that does not depend on them, the mask itself. A product
// over positions is allowed where one operand holds zeros there, Softmax over positions where its operand was masked by
// something that derives from the mask of the padding, and sums over zeros. The first token of a row may be picked, and the
// scores of a loss that ignores the labels of padded tokens. Whatever else reads them is a refusal.
//
// Every node that computes each token by itself is marked: it can run on the tokens that count alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/passes/pattern.h"

namespace stepscope {

// The rows of a value: its tokens as [B, S, ...], as [B * S, ...], or neither.
enum class TokenForm { kNone, kGrid, kFlat };

// The tokens of a batch: ids [B, S], and what says which of them are padding.
struct TokenInput {
  ValueId ids, mask;  // mask [B, S]: zero where a token is padding; absent: where its id is `pad`
  std::int64_t pad = 0;
  std::vector<std::string> labels;  // inputs of as many elements whose labels, where they count, keep a token
};

class TokenFlow {
 public:
  struct Refusal {
    NodeId node;
    std::string reason;
  };

  TokenFlow(const Graph& graph, const Inference& inference, const TokenInput& input);

  // Empty where padded tokens can go.
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // Whether the node computes every token by itself, from operands of which some depend on padded tokens.
  bool isTokenwise(NodeId node) const { return tokenwise_[static_cast<std::size_t>(node.index)]; }
  std::size_t products() const { return products_; }  // matrix products among them
  // The form of a value that depends on padded tokens.
  TokenForm form(ValueId value) const;
  // The form that the shape of any value has.
  TokenForm shaped(ValueId value) const;
  bool dependsOnPadding(ValueId value) const;

 private:
  enum class Held : std::uint8_t { kNothing, kMask, kAnything, kLow, kZero };
  struct State {
    std::vector<Held> held;  // by axis
    bool flat = false;       // axis 0 holds batch entries and positions
  };

  const Shape* shapeOf(ValueId id) const;
  const State* stateOf(ValueId id) const;
  Held heldAt(ValueId id, std::size_t axis) const;
  void setState(ValueId id, State state);
  void refuse(NodeId node, std::string reason);

  void visit(const Node& node);
  bool tokenwise(const Node& node, TokenForm form) const;
  bool losesNothing(const Node& node);
  void pointwise(const Node& node);
  Held combined(const Node& node, const std::vector<Held>& held) const;
  Held selected(const Node& node, const std::vector<Held>& held) const;
  void reshaped(const Node& node);
  void transposed(const Node& node);
  void multiplied(const Node& node);
  void normalised(const Node& node);
  void reduced(const Node& node);
  void cut(const Node& node);
  void picked(const Node& node);
  void joined(const Node& node);
  bool isEmbedding(const Node& node) const;
  bool isPadComparison(const Node& node) const;

  const Graph& graph_;
  const Inference& inference_;
  const TokenInput& input_;
  Readers readers_;
  Dim batch_, length_;
  std::vector<std::optional<State>> states_;  // by value; none: nothing to do with padding
  std::vector<bool> tokenwise_;               // by node
  std::size_t products_ = 0;
  std::optional<Refusal> refusal_;
};

// The input of the step that `value` is, or is a view or cast of; invalid where it is computed.
ValueId inputBehindViews(const Graph& graph, ValueId value);

}  // namespace stepscope
