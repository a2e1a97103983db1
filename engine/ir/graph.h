// The one graph of a training step: a value type. Copies share nodes, values and the edit log until one of them is changed
// there (copy on write), and the contents that values begin with, which stay as they are (initial_contents.h). Nodes and
// values live in vectors indexed by id; removed ones stay there as they were, and alive() is false of them, so that ids keep
// their meaning.
//
// References: what node() and value() give stays valid while the graph grows, but mutableNode() and mutableValue() may put a
// copy in place of a node that is shared. A reference taken before shows the node as it was; take it anew after the change.
//
// Invariants (Graph::verify checks them, in subgraphs too):
//  - order() lists every live node once, producers before consumers; inputs are live values or absent (an invalid id)
//  - a value of role kNodeOutput is output `outputIndex` of its live `producer`, and of nothing else; other roles have none
//  - names of live values are unique, those of live nodes too, and are found
//  - a state update writes a live state, each state at most once, from a live value of its type
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/ir/dim.h"
#include "engine/ir/edit_log.h"
#include "engine/ir/few.h"
#include "engine/ir/ids.h"
#include "engine/ir/initial_contents.h"
#include "engine/ir/interned_text.h"
#include "engine/ir/name_table.h"
#include "engine/ir/provenance.h"
#include "engine/ir/rare.h"
#include "engine/ir/shared_blocks.h"
#include "engine/ir/shared_shape.h"
#include "engine/ir/shared_text.h"
#include "engine/ir/shared_vector.h"
#include "engine/ir/use_table.h"
#include "kernels/attributes.h"
#include "kernels/copy_on_write.h"
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
  SharedShape shape;
  bool optionalOfSequence = false;
  std::string text() const;  // "float32[batch, 8]", "float32[?]" for unknown rank
  friend bool operator==(const ValueType&, const ValueType&) = default;
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
  ValueRole role = ValueRole::kNodeOutput;
  Layout layout = Layout::kPlain;  // how a plan stores it (pass assign_layouts); dims and contents stay the logical ones
  SharedText name;
  ValueType type;
  NodeId producer;      // for kNodeOutput
  int outputIndex = 0;  // which output of the producer
  NodeId madeBy;        // the node that made it first, and as which output; passes do not change them
  int madeAs = 0;
  InitialContents data;  // for kInitializer, kState, kConstant; none while weights are not materialised
};

// A node whose predicate list is not empty runs only when every (value, expected) holds; see ops/README.md "If".
struct Predicate {
  ValueId condition;  // a bool scalar
  bool expected = true;
  friend bool operator==(const Predicate&, const Predicate&) = default;
};

struct Node {
  NodeId id;
  int sinceVersion = 0;  // opset version that the node is written in (after `raise_opset`: kInternalOpset)
  SharedText name;
  InternedText domain;  // "" = ai.onnx
  InternedText op;
  Few<ValueId> inputs;
  Few<ValueId> outputs;  // invalid id = an omitted optional output
  Attributes attrs;
  Rare<std::map<std::string, std::shared_ptr<const Graph>>> subgraphs;
  // Inside functions: attribute name → name of the function's attribute.
  Rare<std::map<std::string, std::string>> attributeReferences;
  Rare<std::vector<Predicate>> predicates;
  Provenance provenance;
  Origin origin;
  Phase phase = Phase::kForward;

  ValueId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : ValueId{}; }
  ValueId output(std::size_t i) const { return i < outputs.size() ? outputs[i] : ValueId{}; }
  // "Softmax 'attn/probs'": how errors and views name a node.
  std::string label() const;
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
  SharedVector<ValueGradient> gradients;  // that phase gradient found; `gradient` as it was then, see KeyIndex

  // --- building. Names that are taken get a suffix "_1", "_2" …; an empty name is made from the op.
  ValueId addValue(std::string name, ValueType type, ValueRole role);
  ValueId addConstant(std::string name, Tensor data);
  // Adds a node at the end of the order with `outputs` fresh values named `<node>_out<i>` (or outputNames[i]).
  // An empty string in outputNames makes that output absent.
  NodeId addNode(std::string name, std::string domain, std::string op, std::vector<ValueId> inputs,
                 std::vector<std::string> outputNames, Attributes attrs = {});
  ValueId addOutput(NodeId node, std::string name);                     // one more output of an existing node
  ValueId addOutput(NodeId node, std::string name, std::size_t index);  // the absent output `index`
  void removeNode(NodeId node);                   // the outputs that it makes die with it; they must have no live uses
  void removeValue(ValueId value);                // no node makes or reads it any more; its producer's output becomes absent
  void replaceAllUses(ValueId from, ValueId to);  // in node inputs, predicates, graph outputs and state updates
  // The same for many at once (one walk); chains a → b → c are followed.
  void replaceAllUses(const std::unordered_map<ValueId, ValueId>& replacements);
  void removeNodes(const std::vector<NodeId>& nodes);  // removeNode for many (one walk)
  void setInput(NodeId node, std::size_t index, ValueId value);
  // The value, which keeps id and name, is from here on output `index` of `to`, which has none there; the output of the node
  // that made it becomes absent. The caller keeps the order.
  void moveOutput(ValueId value, NodeId to, std::size_t index);
  // The same where the caller removes the node that made it next: that one is left as it was, and may be shared.
  void inheritOutput(ValueId value, NodeId to, std::size_t index);
  // Each of two values is from here on made where the other was.
  void swapOutputs(ValueId a, ValueId b);
  // Gives a value another name (made unique); the name it had becomes free.
  void renameValue(ValueId value, std::string name);

  // --- reading
  const Node& node(NodeId id) const { return *nodes_[static_cast<std::size_t>(id.index)]; }
  const Value& value(ValueId id) const { return *values_[static_cast<std::size_t>(id.index)]; }
  // Whether it was not removed.
  bool alive(NodeId id) const { return !isIn(goneNodes_, id.index); }
  bool alive(ValueId id) const { return !isIn(goneValues_, id.index); }
  // Of this graph alone, see "References" above.
  Node& mutableNode(NodeId id);
  Value& mutableValue(ValueId id);
  std::size_t nodeCapacity() const { return nodes_.size(); }  // ids are below this
  std::size_t valueCapacity() const { return values_.size(); }
  const std::vector<NodeId>& order() const;  // live nodes, topological
  void setOrder(std::vector<NodeId> order);
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::vector<ValueId>& mutableInputs() { return inputs_; }
  std::vector<ValueId>& mutableOutputs() { return outputs_; }
  ValueId findValue(std::string_view name) const;  // invalid when absent
  NodeId findNode(std::string_view name) const;    // likewise
  // Uses by node inputs, and predicates, per value id. Outdated by edits.
  UseTable uses() const;
  // How many nodes and values this graph has in common with another one, memory included.
  std::size_t sharedWith(const Graph& other) const;

  // Puts order() into topological order, stable with respect to the present one. Error: a cycle, naming its nodes.
  Status sortTopologically();
  // Checks the invariants; all problems, not the first.
  std::vector<std::string> verify() const;
  // Removes nodes none of whose outputs reach a graph output, a state update or `keep`. Returns how many.
  std::size_t removeDeadNodes(const std::vector<ValueId>& keep = {});

  // --- history
  void setPass(InternedText pass) { pass_ = pass; }
  void setPass(std::string_view pass) { pass_ = InternedText(pass); }
  InternedText pass() const { return pass_; }
  const EditLog& edits() const { return edits_; }
  std::uint64_t version() const { return edits_.size(); }  // unchanged graph = unchanged version
  // The end of phase infer: the live nodes and values are the imported ones, with the same ids in every build of a session.
  void markImported();
  // Remembers what the nodes made since the last call are, before passes rewrite them. Each phase that makes nodes calls it.
  void recordBirths();
  const Births& births() const;  // empty before markImported
  void logChange(NodeId node) { edits_.push_back({Edit::Kind::kChangeNode, node, {}, {}, pass_}); }

 private:
  std::string uniqueName(std::string wish, bool isValue);
  std::int32_t nodeNamed(std::string_view name) const;
  std::int32_t valueNamed(std::string_view name) const;
  void kill(NodeId id);  // everything of removeNode but the order
  static bool isIn(const std::vector<bool>& set, std::int32_t index) {
    return static_cast<std::size_t>(index) < set.size() && set[static_cast<std::size_t>(index)];
  }

  std::vector<NodeId>& mutableOrder();

  SharedBlocks<CopyOnWrite<Node>> nodes_;       // shared with copies of the graph until changed
  SharedBlocks<CopyOnWrite<Value>> values_;     // likewise
  std::shared_ptr<std::vector<NodeId>> order_;  // likewise; null: empty
  std::vector<bool> goneNodes_, goneValues_;    // by id; what is behind the end is alive
  std::vector<ValueId> inputs_, outputs_;
  NameTable nodeNames_, valueNames_;
  SuffixTable suffixes_;
  InternedText pass_{"import"};
  EditLog edits_;
  std::shared_ptr<const Births> births_;  // shared by the copies of the graph
};

}  // namespace stepscope
