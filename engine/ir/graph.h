// The one graph of a training step: a value type. Copying a Graph copies everything but tensor contents, which are shared
// and immutable. Nodes and values live in vectors indexed by id; removed ones stay as tombstones so ids keep their meaning.
//
// Invariants (Graph::verify checks them):
//  - every node's inputs are valid ids of live values or absent (invalid id = an omitted optional input)
//  - every value has at most one producer, and order() lists live nodes with producers before consumers
//  - value names are unique
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/ir/dim.h"
#include "engine/ir/ids.h"
#include "engine/ir/provenance.h"
#include "kernels/attributes.h"
#include "kernels/layout.h"
#include "kernels/status.h"

namespace stepscope {

class Graph;

enum class Phase : std::uint8_t { kForward, kBackward, kRecompute, kOptimizer };
std::string_view phaseName(Phase phase);  // "forward" …

// What a value holds.
enum class ValueKind : std::uint8_t { kTensor, kSequence, kOptional };

// dtype of the elements (of a sequence or optional: of the tensors inside); no shape = unknown rank.
struct ValueType {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;
  bool optionalOfSequence = false;
  std::string text() const;  // "float32[batch, 8]", "float32[?]" for unknown rank
};

enum class ValueRole : std::uint8_t {
  kNodeOutput,
  kInput,        // fed with every batch
  kInitializer,  // named state from the file: parameter, running statistic, buffer. Contents in `data`
  kState,        // state that the build adds: optimizer moments, accumulators, counters. `data` = initial contents
  kConstant,     // contents in `data`, never changes
};

struct Value {
  ValueId id;
  std::string name;
  ValueType type;
  ValueRole role = ValueRole::kNodeOutput;
  NodeId producer;      // for kNodeOutput
  int outputIndex = 0;  // which output of the producer
  NodeId madeBy;        // the node that made it first, and as which output; passes do not change them
  int madeAs = 0;
  std::shared_ptr<const Tensor> data;  // for kInitializer, kState, kConstant; null while weights are not materialised
  Layout layout = Layout::kPlain;      // how a plan stores it (pass assign_layouts); dims and contents stay the logical ones
  bool alive = true;
};

// A node whose predicate list is not empty runs only when every (value, expected) holds; see ops/README.md "If".
struct Predicate {
  ValueId condition;  // a bool scalar
  bool expected = true;
  friend bool operator==(const Predicate&, const Predicate&) = default;
};

struct Node {
  NodeId id;
  std::string name;
  std::string domain;  // "" = ai.onnx
  std::string op;
  int sinceVersion = 0;  // opset version that the node is written in (after `raise_opset`: kInternalOpset)
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  // invalid id = an omitted optional output
  Attributes attrs;
  std::map<std::string, std::shared_ptr<const Graph>> subgraphs;
  std::map<std::string, std::string>
      attributeReferences;  // inside functions: attribute name → name of the function's attribute
  Phase phase = Phase::kForward;
  Provenance provenance;
  Origin origin;
  std::vector<Predicate> predicates;
  bool alive = true;

  ValueId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : ValueId{}; }
  ValueId output(std::size_t i) const { return i < outputs.size() ? outputs[i] : ValueId{}; }
  // "Softmax 'attn/probs'": how errors and views name a node.
  std::string label() const;
};

// One change; diffs between phases are read from the log.
struct Edit {
  enum class Kind : std::uint8_t { kAddNode, kRemoveNode, kChangeNode, kReplaceUses } kind;
  NodeId node;
  ValueId from, to;  // kReplaceUses
  std::string pass;  // the pass that was current
};

// One place where a node reads a value.
struct Use {
  NodeId node;
  std::size_t input = 0;
};

// When the step is committed, the contents of `next` become those of the state value `state` (role kInitializer or kState).
// A step is thus a pure function; the plan decides where `next` may be written over `state` in place.
struct StateUpdate {
  ValueId state, next;
  friend bool operator==(const StateUpdate&, const StateUpdate&) = default;
};

// d loss / d `value` is `gradient`.
struct ValueGradient {
  ValueId value, gradient;
};

class Graph {
 public:
  std::string name;
  std::map<std::string, int> opsets;      // domain → version the file was written in
  std::vector<StateUpdate> stateUpdates;  // roots, like the graph outputs
  std::vector<ValueGradient> gradients;   // that phase gradient found; `gradient` as it was then, see KeyIndex

  // --- building. Names that are taken get a suffix "_1", "_2" …; an empty name is made from the op.
  ValueId addValue(std::string name, ValueType type, ValueRole role);
  ValueId addConstant(std::string name, Tensor data);
  // Adds a node at the end of the order with `outputs` fresh values named `<node>_out<i>` (or outputNames[i]).
  // An empty string in outputNames makes that output absent.
  NodeId addNode(std::string name, std::string domain, std::string op, std::vector<ValueId> inputs,
                 std::vector<std::string> outputNames, Attributes attrs = {});
  ValueId addOutput(NodeId node, std::string name);  // one more output of an existing node
  void removeNode(NodeId node);                      // its outputs die with it; they must have no live uses
  void replaceAllUses(ValueId from, ValueId to);     // in node inputs, predicates, graph outputs and state updates
  // The same for many at once (one walk); chains a → b → c are followed.
  void replaceAllUses(const std::unordered_map<ValueId, ValueId>& replacements);
  void removeNodes(const std::vector<NodeId>& nodes);  // removeNode for many (one walk)
  void setInput(NodeId node, std::size_t index, ValueId value);
  // Gives a value another name (made unique); the name it had becomes free.
  void renameValue(ValueId value, std::string name);

  // --- reading
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id.index)]; }
  Node& mutableNode(NodeId id) { return nodes_[static_cast<std::size_t>(id.index)]; }
  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id.index)]; }
  Value& mutableValue(ValueId id) { return values_[static_cast<std::size_t>(id.index)]; }
  std::size_t nodeCapacity() const { return nodes_.size(); }  // ids are below this
  std::size_t valueCapacity() const { return values_.size(); }
  const std::vector<NodeId>& order() const { return order_; }  // live nodes, topological
  void setOrder(std::vector<NodeId> order) { order_ = std::move(order); }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::vector<ValueId>& mutableInputs() { return inputs_; }
  std::vector<ValueId>& mutableOutputs() { return outputs_; }
  ValueId findValue(std::string_view name) const;  // invalid when absent
  NodeId findNode(std::string_view name) const;    // linear; for users, not for passes
  // Uses by node inputs (and predicates, with input = SIZE_MAX) per value id. Invalidated by edits.
  std::vector<std::vector<Use>> uses() const;

  // Puts order() into topological order, stable with respect to the present one. Error: a cycle, naming its nodes.
  Status sortTopologically();
  // Checks the invariants; all problems, not the first.
  std::vector<std::string> verify() const;
  // Removes nodes none of whose outputs reach a graph output, a state update or `keep`. Returns how many.
  std::size_t removeDeadNodes(const std::vector<ValueId>& keep = {});

  // --- history
  void setPass(std::string pass) { pass_ = std::move(pass); }
  const std::string& pass() const { return pass_; }
  const std::vector<Edit>& edits() const { return edits_; }
  std::uint64_t version() const { return edits_.size(); }  // unchanged graph = unchanged version
  // The end of phase infer: the live nodes and values are the imported ones, with the same ids in every build of a session.
  void markImported();
  // Remembers what the nodes made since the last call are, before passes rewrite them. Each phase that makes nodes calls it.
  void recordBirths();
  const Births& births() const;  // empty before markImported
  void logChange(NodeId node) { edits_.push_back({Edit::Kind::kChangeNode, node, {}, {}, pass_}); }

 private:
  std::string uniqueName(std::string wish, bool isValue);
  void kill(NodeId id);  // everything of removeNode but the order

  std::deque<Node> nodes_;  // deques: references stay valid while a pass adds nodes
  std::deque<Value> values_;
  std::vector<NodeId> order_;
  std::vector<ValueId> inputs_, outputs_;
  std::unordered_map<std::string, ValueId> valueNames_;  // looked up, never iterated
  std::unordered_map<std::string, int> suffixes_;        // next suffix per wished name
  std::unordered_map<std::string, NodeId> nodeNames_;
  std::string pass_ = "import";
  std::vector<Edit> edits_;
  std::shared_ptr<const Births> births_;  // shared by the copies of the graph
};

}  // namespace stepscope
