#include "engine/plugin/pass_bridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"
#include "engine/plugin/attribute_views.h"
#include "engine/plugin/misuse.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kMostOperands = 4096;
using Context = ssp_pass_context;

struct PassCall : ssp_pass_context {
  PassCall(Graph& edited, PassContext& told);

  // --- handles: ids and one
  static ssp_value give(ValueId id) { return static_cast<ssp_value>(id.index + 1); }
  static ssp_node give(NodeId id) { return static_cast<ssp_node>(id.index + 1); }
  ValueId value(ssp_value handle) {
    const ValueId id{static_cast<std::int32_t>(handle) - 1};
    if (id && static_cast<std::size_t>(id.index) < graph.valueCapacity() && graph.alive(id)) return id;
    misuse.note(fmt::format("uses value {}", handle), "one that was given to this call");
    return {};
  }
  const Node* found(ssp_node handle) {
    const NodeId id{static_cast<std::int32_t>(handle) - 1};
    if (id && static_cast<std::size_t>(id.index) < graph.nodeCapacity() && graph.alive(id)) return &graph.node(id);
    misuse.note(fmt::format("uses node {}", handle), "one that was given to this call");
    return nullptr;
  }
  const char* text(std::string content) { return texts.emplace_back(std::move(content)).c_str(); }
  // The readers of a value of the graph as the pass found it.
  std::vector<NodeId> readersOf(ValueId id) const {
    std::vector<NodeId> nodes;
    if (static_cast<std::size_t>(id.index) >= knownValues) return nodes;
    for (const Use& use : readers.of(id))
      if (use.input != SIZE_MAX) nodes.push_back(use.node);
    return nodes;
  }
  ssp_status add(ssp_node from, const char* domain, const char* name, const ssp_value* in, std::uint32_t inCount,
                 const ssp_attr* attrs, std::uint32_t attrCount, ssp_value* out, std::uint32_t outCount);
  ssp_status put(ssp_value old, ssp_value with);

  Graph& graph;
  PassContext& c;
  const std::vector<NodeId> order;  // as the pass found it
  const std::size_t knownValues;
  const Readers readers;
  Replacements replacements;
  std::vector<ValueId> replaced;
  bool edited = false;
  AttributeViews attributes;
  std::deque<std::string> texts;
  std::deque<Attributes> attributesRead;
  Misuse misuse;
};

PassCall& of(Context* context) { return *static_cast<PassCall*>(context); }

ssp_status PassCall::add(ssp_node from, const char* domain, const char* name, const ssp_value* in, std::uint32_t inCount,
                         const ssp_attr* attrs, std::uint32_t attrCount, ssp_value* out, std::uint32_t outCount) {
  const auto refuse = [&](std::string what, std::string expected) -> ssp_status {
    misuse.note(std::move(what), std::move(expected));
    for (std::uint32_t o = 0; out != nullptr && o < outCount && o < kMostOperands; ++o) out[o] = 0;
    return SSP_ERROR;
  };
  if (domain == nullptr || name == nullptr || (inCount > 0 && in == nullptr) || out == nullptr || outCount == 0 ||
      inCount > kMostOperands || outCount > kMostOperands)
    return refuse("adds a node without domain, op, inputs or outputs", "all of them");
  const Node* source = found(from);
  const std::string shown = fmt::format("{}{}{}", domain, *domain == '\0' ? "" : ".", name);
  const OpDef* op = c.inference.ops().find(domain, name);
  if (op == nullptr || domain == kInternalDomain)
    return refuse(fmt::format("adds op '{}'", shown), "one of ONNX at opset 21 or of a plugin that is loaded");
  if (inCount < op->inputs.least || inCount > op->inputs.most || outCount > op->outputs.most)
    return refuse(fmt::format("adds '{}' with {} inputs and {} outputs", shown, inCount, outCount),
                  fmt::format("{} to {} inputs, up to {} outputs", op->inputs.least, op->inputs.most, op->outputs.most));
  std::vector<ValueId> operands;
  for (std::uint32_t i = 0; i < inCount; ++i) operands.push_back(in[i] == 0 ? ValueId{} : value(in[i]));
  auto given = attributesOf(attrs, attrCount);
  if (!given) return refuse(fmt::format("adds '{}': {}", shown, given.error().message), "attributes of the ABI");
  if (misuse.any() || source == nullptr) return refuse("", "");
  std::vector<std::string> names;
  for (std::uint32_t o = 0; o < outCount; ++o)
    names.push_back(outCount == 1 ? fmt::format("{}/{}", source->name, name)
                                  : fmt::format("{}/{}_{}", source->name, name, o));
  edited = true;
  const NodeId made = addBeside(graph, source->id, name, std::move(operands), std::move(names), std::move(*given), domain);
  if (const Status inferred = c.inference.inferNode(made); !inferred)
    return refuse(fmt::format("adds '{}': {}", shown, inferred.error().message), "operands that fit the op");
  for (std::uint32_t o = 0; o < outCount; ++o) {
    const ValueId result = graph.node(made).output(o);
    if (graph.value(result).type.dtype == DType::kUndefined)
      return refuse(fmt::format("adds '{}', whose output {} has no type", shown, o), "operands that fit the op");
    out[o] = give(result);
  }
  return SSP_OK;
}

ssp_status PassCall::put(ssp_value old, ssp_value with) {
  const ValueId from = value(old), to = value(with);
  if (!from || !to) return SSP_ERROR;
  const ValueType &expected = graph.value(from).type, &type = graph.value(to).type;
  bool fits = type.dtype == expected.dtype && type.kind == expected.kind;
  if (type.shape && expected.shape) {
    fits = fits && type.shape->size() == expected.shape->size();
    for (std::size_t axis = 0; fits && axis < type.shape->size(); ++axis) {
      const Dim &a = (*type.shape)[axis], &b = (*expected.shape)[axis];
      fits = !a.known() || !b.known() || a == b;
    }
  }
  if (!fits) {
    misuse.note(fmt::format("replaces '{}' by {}", graph.value(from).name, type.text()),
                fmt::format("{}, its type", expected.text()));
    return SSP_ERROR;
  }
  if (from == to || std::find(replaced.begin(), replaced.end(), from) != replaced.end() ||
      graph.value(from).role != ValueRole::kNodeOutput || static_cast<std::size_t>(to.index) < knownValues) {
    misuse.note(fmt::format("replaces '{}' by '{}'", graph.value(from).name, graph.value(to).name),
                "a result of a node, once, and by the result of a node that this pass added");
    return SSP_ERROR;
  }
  replaced.push_back(from);
  replacements.replace(from, to);
  edited = true;
  return SSP_OK;
}

std::int32_t elementsOf(PassCall& call, ssp_value handle, double* out, std::uint32_t capacity) {
  const ValueId id = call.value(handle);
  const Tensor* tensor = id ? call.c.inference.constant(id) : nullptr;
  if (!tensor || tensor->dtype() == DType::kString || tensor->elements() > static_cast<std::int64_t>(capacity) ||
      out == nullptr)
    return -1;
  for (std::int64_t i = 0; i < tensor->elements(); ++i) out[i] = elementAsDouble(tensor->view(), i);
  return static_cast<std::int32_t>(tensor->elements());
}

void giveNodeFunctions(Context& x) {
  x.node = [](Context* p, std::uint32_t k) -> ssp_node {
    if (k < of(p).order.size()) return PassCall::give(of(p).order[k]);
    of(p).misuse.note(fmt::format("asks for node {}", k), fmt::format("one of {}", of(p).order.size()));
    return 0;
  };
  x.node_name = [](Context* p, ssp_node n) {
    const Node* node = of(p).found(n);
    return of(p).text(node ? node->name.str() : "");
  };
  x.node_domain = [](Context* p, ssp_node n) {
    const Node* node = of(p).found(n);
    return of(p).text(node ? node->domain.str() : "");
  };
  x.node_op = [](Context* p, ssp_node n) {
    const Node* node = of(p).found(n);
    return of(p).text(node ? node->op.str() : "");
  };
  x.input_count = [](Context* p, ssp_node n) {
    const Node* node = of(p).found(n);
    return node ? static_cast<std::uint32_t>(node->inputs.size()) : 0;
  };
  x.input = [](Context* p, ssp_node n, std::uint32_t i) {
    const Node* node = of(p).found(n);
    return node ? PassCall::give(node->input(i)) : 0;
  };
  x.output_count = [](Context* p, ssp_node n) {
    const Node* node = of(p).found(n);
    return node ? static_cast<std::uint32_t>(node->outputs.size()) : 0;
  };
  x.output = [](Context* p, ssp_node n, std::uint32_t o) {
    const Node* node = of(p).found(n);
    return node ? PassCall::give(node->output(o)) : 0;
  };
  x.attr = [](Context* p, ssp_node n, const char* name) -> const ssp_attr* {
    const Node* node = of(p).found(n);
    return node ? of(p).attributes.find(of(p).attributesRead.emplace_back(node->attrs), name) : nullptr;
  };
  x.same_branch = [](Context* p, ssp_node a, ssp_node b) -> std::int32_t {
    const Node *left = of(p).found(a), *right = of(p).found(b);
    return left && right && left->predicates == right->predicates ? 1 : 0;
  };
}

void giveValueFunctions(Context& x) {
  x.producer = [](Context* p, ssp_value v) -> ssp_node {
    const ValueId id = of(p).value(v);
    return id ? PassCall::give(of(p).graph.value(id).producer) : 0;
  };
  x.reader_count = [](Context* p, ssp_value v) {
    const ValueId id = of(p).value(v);
    return id ? static_cast<std::uint32_t>(of(p).readersOf(id).size()) : 0;
  };
  x.reader = [](Context* p, ssp_value v, std::uint32_t k) -> ssp_node {
    const ValueId id = of(p).value(v);
    const std::vector<NodeId> nodes = id ? of(p).readersOf(id) : std::vector<NodeId>{};
    if (k < nodes.size()) return PassCall::give(nodes[k]);
    of(p).misuse.note(fmt::format("asks for reader {}", k), fmt::format("one of {}", nodes.size()));
    return 0;
  };
  x.is_kept = [](Context* p, ssp_value v) -> std::int32_t {
    const ValueId id = of(p).value(v);
    return id && static_cast<std::size_t>(id.index) < of(p).knownValues && of(p).readers.isKept(id) ? 1 : 0;
  };
  x.value_name = [](Context* p, ssp_value v) {
    const ValueId id = of(p).value(v);
    return of(p).text(id ? of(p).graph.value(id).name.str() : "");
  };
  x.dtype = [](Context* p, ssp_value v) -> std::int32_t {
    const ValueId id = of(p).value(v);
    return id ? static_cast<std::int32_t>(of(p).graph.value(id).type.dtype) : SSP_UNDEFINED;
  };
  x.rank = [](Context* p, ssp_value v) {
    const ValueId id = of(p).value(v);
    if (!id || !of(p).graph.value(id).type.shape) return -1;
    return static_cast<std::int32_t>(of(p).graph.value(id).type.shape->size());
  };
  x.extent = [](Context* p, ssp_value v, std::uint32_t axis, std::int64_t* extent) -> std::int32_t {
    const ValueId id = of(p).value(v);
    if (!id || !of(p).graph.value(id).type.shape || axis >= of(p).graph.value(id).type.shape->size()) return 0;
    const Dim& dim = (*of(p).graph.value(id).type.shape)[axis];
    if (dim.known() && extent != nullptr) *extent = dim.value();
    return dim.known() ? 1 : 0;
  };
  x.constant = [](Context* p, ssp_value v, double* out, std::uint32_t capacity) {
    return elementsOf(of(p), v, out, capacity);
  };
}

PassCall::PassCall(Graph& whole, PassContext& told)
    : ssp_pass_context{},
      graph(whole),
      c(told),
      order(whole.order()),
      knownValues(whole.valueCapacity()),
      readers(whole),
      replacements(whole) {
  size = sizeof(ssp_pass_context);
  node_count = static_cast<std::uint32_t>(order.size());
  giveNodeFunctions(*this);
  giveValueFunctions(*this);
  option = [](Context* p, const char* name) -> const char* {
    const auto it = name == nullptr ? of(p).c.options.end() : of(p).c.options.find(std::string_view(name));
    return it == of(p).c.options.end() ? nullptr : it->second.c_str();
  };
  add_node = [](Context* p, ssp_node from, const char* domain, const char* op, const ssp_value* in, std::uint32_t inCount,
                const ssp_attr* attrs, std::uint32_t attrCount, ssp_value* out, std::uint32_t outCount) {
    return of(p).add(from, domain, op, in, inCount, attrs, attrCount, out, outCount);
  };
  replace = [](Context* p, ssp_value old, ssp_value with) { return of(p).put(old, with); };
  match = [](Context* p) { of(p).c.match(); };
  miss = [](Context* p, ssp_node n, const char* condition) {
    if (const Node* node = of(p).found(n)) of(p).c.miss(node->id, condition == nullptr ? "" : condition);
  };
  note = [](Context* p, const char* content) {
    if (content != nullptr) of(p).c.note(content);
  };
  fail = [](Context* p, const char* message) { return of(p).misuse.fail(message); };
}

}  // namespace

PassBridge::PassBridge(const PluginLibrary& owner, const ssp_pass& declared)
    : library(owner),
      pass(declared),
      runLabel(owner.label(fmt::format("run of pass '{}'", declared.name))),
      definition{declared.name, declared.doc, runPluginPass, declared.off != 0 ? PassSwitch::kOff : PassSwitch::kOn, this} {}

Status runPluginPass(Graph& graph, PassContext& context) {
  const auto& bridge = *static_cast<const PassBridge*>(context.user);
  const Graph before = graph;
  const auto attempt = [&]() -> Status {
    PassCall call(graph, context);
    ssp_status status = SSP_ERROR;
    SS_TRY(guarded(bridge.runLabel, [&]() -> Status {
      status = bridge.pass.run(&bridge.pass, &call);
      return {};
    }));
    SS_TRY(call.misuse.verdict(bridge.runLabel, status, ""));
    if (!call.edited) return {};
    call.replacements.apply();
    if (const Status sorted = graph.sortTopologically(); !sorted)
      return againstContract(bridge.runLabel, "leaves a graph with " + sorted.error().message, "expected no cycle");
    graph.removeDeadNodes();
    return {};
  };
  Status done = attempt();
  if (!done) graph = before;
  return done;
}

}  // namespace stepscope
