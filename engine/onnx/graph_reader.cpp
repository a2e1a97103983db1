#include "engine/onnx/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "engine/data/limits.h"
#include "engine/onnx/attribute_reader.h"
#include "engine/onnx/function_calls.h"
#include "engine/onnx/module_path.h"
#include "engine/onnx/node_metadata.h"
#include "engine/onnx/type_reader.h"

namespace stepscope {
namespace {

constexpr std::size_t kCycleNodesShown = 6;

// What GraphProto and FunctionProto have in common.
struct Parts {
  std::string name;
  google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes = nullptr;
  std::vector<const onnx::ValueInfoProto*> inputs;  // of a graph
  std::vector<std::string> inputNames;              // of a function
  std::vector<std::string> outputs;
  std::vector<const onnx::ValueInfoProto*> declared;  // outputs and value_info with types
  google::protobuf::RepeatedPtrField<onnx::TensorProto>* initializers = nullptr;
  int sparseInitializers = 0;
};

Parts partsOf(onnx::GraphProto& proto) {
  Parts parts;
  parts.name = proto.name();
  parts.nodes = proto.mutable_node();
  for (const auto& input : proto.input()) parts.inputs.push_back(&input);
  for (const auto& output : proto.output()) {
    parts.outputs.push_back(output.name());
    parts.declared.push_back(&output);
  }
  for (const auto& info : proto.value_info()) parts.declared.push_back(&info);
  parts.initializers = proto.mutable_initializer();
  parts.sparseInitializers = proto.sparse_initializer_size();
  return parts;
}

Parts partsOf(onnx::FunctionProto& proto) {
  Parts parts;
  parts.name = proto.name();
  parts.nodes = proto.mutable_node();
  parts.inputNames.assign(proto.input().begin(), proto.input().end());
  parts.outputs.assign(proto.output().begin(), proto.output().end());
  return parts;
}

class GraphReader {
 public:
  GraphReader(GraphReadContext& context, const GraphReader* outer, std::string where)
      : context_(context), outer_(outer), where_(std::move(where)), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> read(Parts parts) {
    graph_->name = parts.name;
    graph_->opsets = context_.opsets;
    const std::size_t before = context_.problems.count();
    defineInputs(parts);
    defineInitializers(parts);
    defineNodeOutputs(*parts.nodes);
    readDeclared(parts);
    parsed_.resize(protos_.size());
    for (std::size_t i = 0; i < protos_.size(); ++i) readNode(i);
    resolveOutputs(parts);
    const auto sorted = sortNodes();
    if (context_.problems.count() == before) build(parts, sorted);
    return graph_;
  }

  // Names of enclosing graphs that this one uses, in order of first use.
  const std::vector<std::string>& captures() const { return captures_; }

 private:
  struct Definition {
    const char* what;   // "input", "initializer", "output"
    int producer = -1;  // index of the node in the file
    ValueId value;      // once built
  };
  struct Parsed {
    onnx::NodeProto* proto = nullptr;
    Node node;                          // attributes, subgraphs, references; no ids yet
    std::vector<std::string> captures;  // names that its subgraphs take from outside of them
    std::vector<NamedPredicate> predicates;
    Metadata metadata;
  };

  void problem(const std::string& where, std::string message, ErrorCode code = ErrorCode::kInvalidArgument,
               std::string hint = "") {
    context_.problems.add(code, where, std::move(message), std::move(hint));
  }
  bool resolves(const std::string& name) const { return names_.contains(name) || (outer_ && outer_->resolves(name)); }

  std::string nodeWhere(std::size_t index, const onnx::NodeProto& proto) const {
    const std::string name = proto.name().empty() ? fmt::format("#{}", index) : shownName(proto.name());
    const std::string op = proto.op_type().empty() ? "node" : shownName(proto.op_type());
    return (outer_ ? where_ + ": " : "") + op + " '" + name + "'";
  }

  void define(const std::string& name, Definition definition, const std::string& where) {
    const auto [it, fresh] = names_.emplace(name, definition);
    if (fresh) return;
    const auto place = [&](const Definition& d) {
      return d.producer < 0 ? fmt::format("graph {}", d.what)
                            : "output of " + nodeWhere(static_cast<std::size_t>(d.producer),
                                                       *protos_[static_cast<std::size_t>(d.producer)]);
    };
    problem(where, fmt::format("value '{}' is defined twice, first as {}; expected one definition", shownName(name),
                               place(it->second)));
  }

  void defineInputs(const Parts& parts) {
    std::unordered_set<std::string> initialized;
    if (parts.initializers)
      for (const auto& tensor : *parts.initializers) initialized.insert(tensor.name());
    std::unordered_set<std::string> listed;
    for (const auto* info : parts.inputs) {
      const std::string where = where_ + ": input '" + shownName(info->name()) + "'";
      if (info->name().empty()) {
        problem(where_, "an input without a name; expected one");
        continue;
      }
      auto type = valueTypeFromProto(info->type(), info->name());
      if (!type) {
        problem(where, type.error().message, type.error().code);
        type = ValueType{};
      } else if (!outer_ && type->dtype == DType::kUndefined) {
        problem(where, "no type; expected a tensor, sequence or optional type");
      }
      if (!listed.insert(info->name()).second) {
        problem(where, "listed twice; expected once");
        continue;
      }
      context_.valueInfo.emplace(info->name(), *type);
      // An input with an initializer is the initializer: its contents are the default that training changes.
      if (initialized.contains(info->name())) continue;
      define(info->name(), {"input"}, where);
      inputTypes_.emplace_back(info->name(), std::move(*type));
    }
    for (const auto& name : parts.inputNames) {
      if (name.empty()) problem(where_, "an input without a name; expected one");
      define(name, {"input"}, where_);
      inputTypes_.emplace_back(name, ValueType{});
    }
  }

  void defineInitializers(const Parts& parts) {
    if (parts.sparseInitializers > 0)
      problem(where_, fmt::format("{} sparse initializers; expected dense ones", parts.sparseInitializers),
              ErrorCode::kUnsupported);
    if (!parts.initializers) return;
    for (auto& tensor : *parts.initializers) {
      const std::string where = where_ + ": initializer '" + shownName(tensor.name()) + "'";
      if (tensor.name().empty()) {
        problem(where_, "an initializer without a name; expected one");
        continue;
      }
      define(tensor.name(), {"initializer"}, where);
      PendingTensor pending{&tensor, {}, graph_, {}};
      if (context_.payloads)
        if (const auto it = context_.payloads->find(&tensor); it != context_.payloads->end())
          pending.header.raw = it->second;
      if (readTensorHeader(tensor, where, context_.problems, pending.header, true))
        initializers_.push_back(std::move(pending));
    }
  }

  void defineNodeOutputs(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (auto& proto : nodes) protos_.push_back(&proto);
    for (std::size_t i = 0; i < protos_.size(); ++i)
      for (const auto& name : protos_[i]->output())
        if (!name.empty()) define(name, {"output", static_cast<int>(i)}, nodeWhere(i, *protos_[i]));
  }

  void readDeclared(const Parts& parts) {
    for (const auto* info : parts.declared) {
      auto type = valueTypeFromProto(info->type(), info->name());
      // A declaration that we cannot carry is only lost knowledge, unless it is of something we must hand in or out.
      if (type && type->dtype != DType::kUndefined) context_.valueInfo.emplace(info->name(), std::move(*type));
      if (!type && type.error().code != ErrorCode::kUnsupported)
        problem(where_ + ": value '" + shownName(info->name()) + "'", type.error().message, type.error().code);
    }
    for (const auto& pending : initializers_) {
      const auto it = context_.valueInfo.find(pending.proto->name());
      if (it == context_.valueInfo.end() || outer_) continue;
      const ValueType& declared = it->second;
      bool agrees = declared.kind == ValueKind::kTensor &&
                    (declared.dtype == pending.header.dtype || declared.dtype == DType::kUndefined);
      if (declared.shape) {
        agrees = agrees && declared.shape->size() == pending.header.dims.size();
        for (std::size_t axis = 0; agrees && axis < declared.shape->size(); ++axis)
          agrees = !(*declared.shape)[axis].known() || (*declared.shape)[axis].value() == pending.header.dims[axis];
      }
      if (!agrees)
        problem(where_ + ": initializer '" + shownName(pending.proto->name()) + "'",
                fmt::format("{}{} but declared as {}; expected the same type and dims", dtypeName(pending.header.dtype),
                            dimsText(pending.header.dims), declared.text()));
    }
  }

  void readNode(std::size_t index) {
    onnx::NodeProto& proto = *protos_[index];
    Parsed& parsed = parsed_[index];
    parsed.proto = &proto;
    const std::string where = nodeWhere(index, proto);
    Node& node = parsed.node;
    node.op = proto.op_type();
    node.domain = normalisedDomain(proto.domain());
    if (node.op.empty()) problem(where, "no operator; expected op_type");
    if (const auto it = context_.opsets.find(node.domain); it != context_.opsets.end())
      node.sinceVersion = it->second;
    else if (!context_.functionDomains.contains(node.domain))
      problem(where, fmt::format("domain '{}' is not imported; expected an opset_import for it", shownName(node.domain)));
    const std::size_t before = context_.problems.count();
    const AttributeContext attributes{
        context_.problems, context_.files, context_.insideFunction,
        [&](onnx::GraphProto& graph, const std::string& place) -> std::shared_ptr<const Graph> {
          return readSubgraph(graph, place, parsed);
        }};
    readAttributes(*proto.mutable_attribute(), where, attributes, node);
    if (auto overload = unknownString(proto, kNodeOverloadField); !overload.empty())
      node.attrs.set(kOverloadAttribute, std::move(overload));
    if (context_.problems.count() == before) checkRequired(where, node, proto.output_size());
    parsed.metadata = unknownMetadata(proto, kNodeMetadataField);
    node.provenance.pass = InternedText("import");
    readTorchProvenance(parsed.metadata, proto.name(), node.provenance);
    for (const auto& name : proto.input()) use(name, where, "input");
    for (const auto& name : parsed.captures) use(name, where, "captured value");
  }

  std::shared_ptr<const Graph> readSubgraph(onnx::GraphProto& proto, const std::string& place, Parsed& parsed) {
    GraphReader reader(context_, this, place);
    auto graph = reader.read(partsOf(proto));
    for (const auto& name : reader.captures())
      if (std::find(parsed.captures.begin(), parsed.captures.end(), name) == parsed.captures.end())
        parsed.captures.push_back(name);
    if (parsed.node.op == "If" && parsed.node.domain.empty() && proto.input_size() > 0)
      problem(place, fmt::format("{} formal inputs; a branch of If has none", proto.input_size()));
    return graph;
  }

  void checkRequired(const std::string& where, const Node& node, int outputs) {
    if (!node.domain.empty()) return;
    if (node.op == "Constant" && !node.attrs.has("value") && node.attributeReferences.empty())
      problem(where,
              "no value or several; expected exactly one of value, value_int, value_float, value_string and their lists");
    const auto need = [&](const char* name) {
      if (!node.subgraphs.contains(name)) problem(where, fmt::format("no attribute '{}'; expected a graph", name));
    };
    if (node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap") need("body");
    if (node.op != "If") return;
    for (const char* branch : {"then_branch", "else_branch"}) {
      need(branch);
      const auto it = node.subgraphs.find(branch);
      if (it != node.subgraphs.end() && it->second && it->second->outputs().size() != static_cast<std::size_t>(outputs))
        problem(where, fmt::format("{} has {} outputs; expected the {} of the node", branch, it->second->outputs().size(),
                                   outputs));
    }
  }

  void use(const std::string& name, const std::string& where, const char* what) {
    if (name.empty() || names_.contains(name)) return;
    if (outer_ && outer_->resolves(name)) return capture(name);
    problem(where, fmt::format("{} '{}' is made by no node, input or initializer; expected a defined value", what,
                               shownName(name)));
  }

  void capture(const std::string& name) {
    if (captured_.insert(name).second) captures_.push_back(name);
  }

  void resolveOutputs(const Parts& parts) {
    for (const auto& name : parts.outputs) {
      if (name.empty())
        problem(where_, "an output without a name; expected one");
      else
        use(name, where_, "output");
    }
  }

  std::vector<std::size_t> sortNodes() {
    std::vector<int> pending(protos_.size(), 0);
    std::vector<std::vector<std::size_t>> consumers(protos_.size());
    const auto depend = [&](std::size_t node, const std::string& name) {
      const auto it = names_.find(name);
      if (it == names_.end() || it->second.producer < 0) return;
      consumers[static_cast<std::size_t>(it->second.producer)].push_back(node);
      ++pending[node];
    };
    for (std::size_t i = 0; i < protos_.size(); ++i) {
      for (const auto& name : protos_[i]->input()) depend(i, name);
      for (const auto& name : parsed_[i].captures) depend(i, name);
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < pending.size(); ++i)
      if (pending[i] == 0) ready.push(i);
    std::vector<std::size_t> sorted;
    sorted.reserve(protos_.size());
    while (!ready.empty()) {
      const std::size_t i = ready.top();
      ready.pop();
      sorted.push_back(i);
      for (const std::size_t next : consumers[i])
        if (--pending[next] == 0) ready.push(next);
    }
    if (sorted.size() < protos_.size()) reportCycle(pending);
    return sorted;
  }

  // Walks producers that are themselves waiting until a node comes up again: those in between are a cycle.
  void reportCycle(const std::vector<int>& pending) {
    const auto waitingProducer = [&](std::size_t node) -> std::size_t {
      const auto check = [&](const std::string& name) -> int {
        const auto it = names_.find(name);
        const int producer = it == names_.end() ? -1 : it->second.producer;
        return producer >= 0 && pending[static_cast<std::size_t>(producer)] > 0 ? producer : -1;
      };
      for (const auto& name : protos_[node]->input())
        if (const int producer = check(name); producer >= 0) return static_cast<std::size_t>(producer);
      for (const auto& name : parsed_[node].captures)
        if (const int producer = check(name); producer >= 0) return static_cast<std::size_t>(producer);
      return node;
    };
    std::size_t at = static_cast<std::size_t>(std::find_if(pending.begin(), pending.end(), [](int n) { return n > 0; }) -
                                              pending.begin());
    std::vector<bool> seen(protos_.size(), false);
    while (!seen[at]) {
      seen[at] = true;
      at = waitingProducer(at);
    }
    std::string names = nodeWhere(at, *protos_[at]);
    std::size_t count = 1;
    for (std::size_t next = waitingProducer(at); next != at; next = waitingProducer(next))
      if (++count <= kCycleNodesShown) names += " ← " + nodeWhere(next, *protos_[next]);
    if (count > kCycleNodesShown) names += fmt::format(" and {} more", count - kCycleNodesShown);
    problem(where_, "nodes form a cycle: " + names + "; expected an acyclic graph");
  }

  // --- building, only when no problem was found

  void build(const Parts& parts, const std::vector<std::size_t>& sorted) {
    for (auto& [name, type] : inputTypes_) {
      const ValueId id = graph_->addValue(name, std::move(type), ValueRole::kInput);
      names_[name].value = id;
      graph_->mutableInputs().push_back(id);
    }
    for (auto& pending : initializers_) buildInitializer(pending);
    for (const auto& name : captures_) {
      const ValueId id = graph_->addValue(name, {}, ValueRole::kInput);
      names_[name].value = id;
      graph_->mutableInputs().push_back(id);
    }
    const auto ids = addNodes(sorted);
    std::vector<NodeId> order;
    for (const std::size_t index : sorted) {
      order.push_back(ids[index]);
      Node& node = graph_->mutableNode(ids[index]);
      for (const auto& name : protos_[index]->input())
        node.inputs.push_back(name.empty() ? ValueId{} : names_.at(name).value);
      for (const auto& predicate : parsed_[index].predicates) {
        const auto it = names_.find(predicate.condition);
        if (it != names_.end()) node.predicates.edit().push_back({it->second.value, predicate.expected});
      }
    }
    graph_->setOrder(std::move(order));
    for (const auto& name : parts.outputs) {
      const ValueId output = names_.at(name).value;
      graph_->mutableOutputs().push_back(output);
      const auto declared = context_.valueInfo.find(name);
      if (!outer_ && graph_->value(output).role == ValueRole::kNodeOutput && declared != context_.valueInfo.end())
        graph_->mutableValue(output).type = declared->second;
    }
    inferModulePaths(*graph_);
  }

  void buildInitializer(PendingTensor& pending) {
    const std::string role = [&] {
      const Metadata metadata = unknownMetadata(*pending.proto, kTensorMetadataField);
      const auto it = metadata.find(kRoleKey);
      return it == metadata.end() ? std::string() : it->second;
    }();
    const ValueRole valueRole = role == "state"      ? ValueRole::kState
                                : role == "constant" ? ValueRole::kConstant
                                                     : ValueRole::kInitializer;
    pending.value = graph_->addValue(pending.proto->name(),
                                     {ValueKind::kTensor, pending.header.dtype, shapeOf(pending.header.dims)}, valueRole);
    names_[pending.proto->name()].value = pending.value;
    context_.pending.push_back(std::move(pending));
  }

  // Ids in topological order, or those that a saved stage had.
  std::vector<NodeId> addNodes(const std::vector<std::size_t>& sorted) {
    std::vector<NodeId> ids(protos_.size());
    const auto slots = savedSlots();
    if (slots.empty()) {
      for (const std::size_t index : sorted) ids[index] = addNode(index, 0);
      return ids;
    }
    std::vector<NodeId> removed;
    for (const int index : slots) {
      if (index >= 0)
        ids[static_cast<std::size_t>(index)] = addNode(static_cast<std::size_t>(index), slots.size());
      else
        removed.push_back(graph_->addNode("stepscope.removed", "stepscope", "Removed", {}, {}));
    }
    graph_->removeNodes(removed);
    for (const NodeId id : removed) describeRemoved(id, slots.size());
    return ids;
  }

  // For each id of a saved stage the index of its node in the file or -1; empty when the file is no saved stage.
  std::vector<int> savedSlots() const {
    if (outer_ || context_.nodeCapacity == 0) return {};
    std::vector<int> slots(context_.nodeCapacity, -1);
    for (std::size_t i = 0; i < parsed_.size(); ++i) {
      const auto id = savedNodeId(parsed_[i].metadata);
      if (!id || static_cast<std::size_t>(*id) >= slots.size() || slots[static_cast<std::size_t>(*id)] >= 0) return {};
      slots[static_cast<std::size_t>(*id)] = static_cast<int>(i);
    }
    return slots;
  }

  NodeId addNode(std::size_t index, std::size_t capacity) {
    Parsed& parsed = parsed_[index];
    const auto& outputs = parsed.proto->output();
    const NodeId id = graph_->addNode(parsed.proto->name(), parsed.node.domain, parsed.node.op, {},
                                      {outputs.begin(), outputs.end()}, std::move(parsed.node.attrs));
    Node& node = graph_->mutableNode(id);
    node.sinceVersion = parsed.node.sinceVersion;
    node.subgraphs = std::move(parsed.node.subgraphs);
    node.attributeReferences = std::move(parsed.node.attributeReferences);
    node.provenance = std::move(parsed.node.provenance);
    node.provenance.imported = id;
    if (savedNodeId(parsed.metadata)) {
      parsed.predicates = readNodeMetadata(parsed.metadata, capacity, node);
      if (capacity == 0) node.provenance.imported = id;  // in a subgraph, or ids that do not fit
    }
    for (const ValueId out : node.outputs)
      if (out) names_[graph_->value(out).name].value = out;
    return id;
  }

  void describeRemoved(NodeId id, std::size_t capacity) {
    const auto it = context_.removed.find(id.index);
    if (it == context_.removed.end()) return;
    onnx::NodeProto proto;
    if (!proto.ParseFromString(it->second)) return;
    Node& node = graph_->mutableNode(id);
    node.name = proto.name();
    node.op = proto.op_type();
    node.domain = proto.domain();
    readNodeMetadata(unknownMetadata(proto, kNodeMetadataField), capacity, node);
  }

  GraphReadContext& context_;
  const GraphReader* outer_;
  std::string where_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Definition> names_;
  std::vector<std::pair<std::string, ValueType>> inputTypes_;
  std::vector<PendingTensor> initializers_;
  std::vector<onnx::NodeProto*> protos_;
  std::vector<Parsed> parsed_;
  std::unordered_set<std::string> captured_;
  std::vector<std::string> captures_;
};

}  // namespace

std::shared_ptr<Graph> readGraph(onnx::GraphProto& proto, GraphReadContext& context) {
  return GraphReader(context, nullptr, "graph '" + shownName(proto.name()) + "'").read(partsOf(proto));
}

std::shared_ptr<Graph> readFunctionBody(onnx::FunctionProto& proto, GraphReadContext& context) {
  return GraphReader(context, nullptr, "function '" + shownName(proto.name()) + "'").read(partsOf(proto));
}

std::string normalisedDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace stepscope
