#include "tests/fuzz/random_networks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "engine/exec/interpreter.h"
#include "engine/ops/operators.h"
#include "engine/passes/infer.h"
#include "tests/engine/ops/examples.h"

namespace stepscope::testing {
namespace {

using Random = std::mt19937_64;  // its numbers are fixed by the standard
using Extents = std::vector<std::int64_t>;

enum Shape : std::size_t { kArithmetic, kReduction, kMovement, kActivation, kIf, kProduct, kWithItself, kShapes };

std::int64_t below(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

template <typename T>
T oneOf(Random& random, std::initializer_list<T> list) {
  return list.begin()[below(random, static_cast<std::int64_t>(list.size()))];
}

const std::array<Extents, 5> kParameters{Extents{5}, Extents{2, 3}, Extents{}, Extents{1, 4, 1}, Extents{2, 0}};

bool isUsable(const OpExample& example) {
  const OpDef* op = builtInOperators().ops.find(example.domain, example.op);
  // FakeQuant passes its gradient straight through, DynamicQuantizeLinear none from the scale that it computes: not the
  // slopes that differences find. Inverse has none at all where a value that fits the place is singular.
  constexpr std::array kLeftOut{"FakeQuant", "DynamicQuantizeLinear", "Inverse"};
  if (op == nullptr || (!example.domain.empty() && example.domain != "com.microsoft") || op->sequences || op->random ||
      std::find(kLeftOut.begin(), kLeftOut.end(), op->name) != kLeftOut.end())
    return false;
  const ExampleGraph graph = makeGraph(example, DType::kF64);
  for (const Tensor& tensor : graph.contents) {
    if (!tensor.valid()) continue;
    if (tensor.dtype() == DType::kString) return false;
    if (isFloating(tensor.dtype()) && tensor.dtype() != DType::kF32 && tensor.dtype() != DType::kF64) return false;
  }
  Interpreter interpreter(graph.graph, builtInOperators(), Backend::kReference, {.seed = 7});
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (graph.inputs[i] && graph.graph.value(graph.inputs[i]).role == ValueRole::kInput &&
        !interpreter.feed(graph.inputs[i], graph.contents[i]))
      return false;
  if (!interpreter.run()) return false;
  for (const ValueId out : graph.graph.node(graph.node).outputs) {
    const Tensor* tensor = out ? interpreter.value(out) : nullptr;
    for (std::int64_t k = 0; tensor != nullptr && isFloating(tensor->dtype()) && k < tensor->elements(); ++k)
      if (!std::isfinite(elementAsDouble(tensor->view(), k))) return false;
  }
  return true;
}

class Emitter {
 public:
  Emitter(onnx::GraphProto& graph, DType type) : graph_(graph), type_(type) {}

  void parameters(const Network& network, std::uint64_t draw) {
    Random random(network.seed * 1000003 + draw);
    for (std::size_t p = 0; p < kParameters.size(); ++p) {
      Tensor tensor(type_, kParameters[p]);
      for (std::int64_t k = 0; k < tensor.elements(); ++k) {
        const double number = static_cast<double>(random() >> 11) * 0x1p-52 - 1;  // in [-1, 1)
        storeElement(tensor.view(), k, network.ties && draw == 0 ? std::round(2 * number) / 2 : static_cast<float>(number));
      }
      const std::string name = "p" + std::to_string(p);
      initializer(name, tensor);
      pool_.push_back(name);
    }
  }

  void unit(const Unit& unit) {
    Random random(unit.seed);
    const auto source = [&](std::size_t i) { return pool_[unit.sources[i % unit.sources.size()] % pool_.size()]; };
    const auto& examples = usableExamples();
    if (unit.kind < examples.size()) return example(examples[unit.kind], source);
    switch (unit.kind - examples.size()) {
      case kArithmetic: return arithmetic(random, source);
      case kReduction: return reduction(random, source(0));
      case kMovement: return movement(random, source);
      case kActivation:
        return keep(
            node(oneOf<const char*>(random, {"Relu", "Tanh", "Sigmoid", "Softplus", "Gelu", "Abs", "Neg", "HardSwish"}),
                 {squashed(source(0), -3, 3)}));
      case kIf: return branches(random, source);
      case kProduct: {
        const std::int64_t m = 1 + below(random, 4), k = 1 + below(random, 4), n = 1 + below(random, 20);
        const bool batch = below(random, 2) == 0;
        return keep(node("MatMul", {shaped(source(0), batch ? Extents{2, m, k} : Extents{m, k}, -1, 1),
                                    shaped(source(1), {k, n}, -1, 1)}));
      }
      default: return keep(node(oneOf<const char*>(random, {"Max", "Min", "Add", "Mul"}), {source(0), source(0)}));
    }
  }

  // Most values count, some are unused.
  void loss(const Network& network) {
    std::vector<std::string> terms;
    for (std::size_t i = 0; i < pool_.size(); ++i)
      if (i + 1 == pool_.size() || (network.seed + i) % 4 != 0)
        terms.push_back(node("ReduceSum", {node("Tanh", {pool_[i]})}, {{"keepdims", std::int64_t{0}}}));
    const std::string sum = node("Sum", terms);
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, "loss");
    auto& output = *graph_.add_output();
    output.set_name("loss");
    output.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(type_));
    output.mutable_type()->mutable_tensor_type()->mutable_shape();
  }

 private:
  void initializer(const std::string& name, const Tensor& tensor) {
    onnx::TensorProto& proto = *graph_.add_initializer();
    proto.set_name(name);
    proto.set_data_type(static_cast<int>(tensor.dtype()));
    for (const std::int64_t dim : tensor.dims()) proto.add_dims(dim);
    proto.set_raw_data(tensor.data(), tensor.bytes());
  }
  std::string constant(const Tensor& tensor) {
    const std::string name = "c" + std::to_string(++made_);
    initializer(name, tensor);
    return name;
  }
  std::string ints(const Extents& values) { return constant(Tensor::ints(values)); }
  std::string number(double value) { return constant(Tensor::scalar(type_, value)); }

  std::vector<std::string> nodes(const std::string& op, const std::vector<std::string>& inputs, std::size_t outputs,
                                 const Attributes& attrs, const std::string& domain) {
    onnx::NodeProto& proto = *graph_.add_node();
    proto.set_op_type(op);
    proto.set_domain(domain);
    proto.set_name(op + "_" + std::to_string(++made_));
    for (const std::string& input : inputs) proto.add_input(input);
    std::vector<std::string> names;
    for (std::size_t o = 0; o < outputs; ++o) {
      names.push_back("v" + std::to_string(made_) + "_" + std::to_string(o));
      proto.add_output(names.back());
    }
    for (const auto& [name, value] : attrs.entries()) addAttribute(proto, name, value);
    return names;
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attrs = {}) {
    return nodes(op, inputs, 1, attrs, "").front();
  }
  void keep(std::string name) { pool_.push_back(std::move(name)); }

  static void addAttribute(onnx::NodeProto& node, const std::string& name, const AttrValue& value) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(name);
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(*i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      proto.set_type(onnx::AttributeProto::FLOAT);
      proto.set_f(*f);
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(*s);
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      proto.set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t v : *list) proto.add_ints(v);
    } else if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
      proto.set_type(onnx::AttributeProto::FLOATS);
      for (const float v : *reals) proto.add_floats(v);
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      proto.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& v : *texts) proto.add_strings(v);
    } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
      proto.set_type(onnx::AttributeProto::TENSOR);
      proto.mutable_t()->set_data_type(static_cast<int>(tensor->dtype()));
      for (const std::int64_t dim : tensor->dims()) proto.mutable_t()->add_dims(dim);
      proto.mutable_t()->set_raw_data(tensor->data(), tensor->bytes());
    }
  }

  std::string squashed(const std::string& value, double low, double high) {
    const std::string scaled = node("Mul", {node("Tanh", {value}), number((high - low) / 2)});
    return node("Add", {scaled, number((high + low) / 2)});
  }
  // As many elements as the place takes, whatever there is.
  std::string fitted(const std::string& value, const Extents& dims) {
    const std::int64_t count = elementCount(dims);
    const std::string flat = node("Reshape", {value, ints({-1})});
    const std::string some = node("Concat", {flat, "p0"}, {{"axis", std::int64_t{0}}});
    const std::string many = count > 5 ? node("Tile", {some, ints({(count + 4) / 5})}) : some;
    return node("Reshape", {node("Slice", {many, ints({0}), ints({count}), ints({0})}), ints(dims)},
                {{"allowzero", std::int64_t{1}}});
  }
  std::string shaped(const std::string& value, const Extents& dims, double low, double high) {
    return squashed(fitted(value, dims), low, high);
  }

  template <typename Source>
  void example(const OpExample& example, const Source& source) {
    const ExampleGraph graph = makeGraph(example, type_);
    std::vector<std::string> inputs;
    for (std::size_t i = 0; i < example.inputs.size(); ++i) {
      const ExampleInput& input = example.inputs[i];
      if (input.absent)
        inputs.emplace_back();
      else if (input.constant.valid() || !isFloating(input.dtype) || isStop(example, i))
        inputs.push_back(constant(graph.contents[i]));
      else
        inputs.push_back(shaped(source(i), input.dims, input.low, input.high));
    }
    const auto outputs = nodes(example.op, inputs, example.outputs, example.attrs, example.domain);
    const OpDef* op = builtInOperators().ops.find(example.domain, example.op);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (isFloatResult(graph, o) && (!op->gradient || maskHas(op->differentiableOutputs, o)))
        keep(node("Cast", {outputs[o]}, {{"to", static_cast<std::int64_t>(type_)}}));
  }
  // Where no gradient goes although the result depends on the input, nothing that is trained may lead.
  static bool isStop(const OpExample& example, std::size_t input) {
    const OpDef* op = builtInOperators().ops.find(example.domain, example.op);
    return op->gradient && !maskHas(op->differentiableInputs, input);
  }
  static bool isFloatResult(const ExampleGraph& example, std::size_t output) {
    Graph graph = example.graph;
    Inference inference(graph, builtInOperators());
    if (!inference.run()) return false;
    return isFloating(graph.value(graph.node(example.node).outputs[output]).type.dtype);
  }

  Extents extents(Random& random, std::int64_t least) {
    Extents dims(static_cast<std::size_t>(least + below(random, 6 - least)));
    for (std::int64_t& dim : dims) dim = 1 + below(random, 4);
    if (least == 0 && !dims.empty() && below(random, 8) == 0)
      dims[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(dims.size())))] = 0;
    return dims;
  }

  template <typename Source>
  void arithmetic(Random& random, const Source& source) {
    const Extents whole = extents(random, 0);
    const auto operand = [&](std::size_t i) {
      Extents dims = whole;
      for (std::int64_t& dim : dims)
        if (below(random, 3) == 0) dim = 1;
      if (!dims.empty() && below(random, 3) == 0)
        dims.erase(dims.begin(), dims.begin() + 1 + below(random, static_cast<std::int64_t>(dims.size())));
      return shaped(source(i), dims, -2, 2);
    };
    const std::string a = operand(0), b = operand(1);
    const auto op =
        oneOf<const char*>(random, {"Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "Where", "Div", "Pow", "Clip"});
    const std::string name = op;
    if (name == "Sum" || name == "Mean" || (name == "Max" && below(random, 2) == 0))
      return keep(node(op, {a, b, operand(2)}));
    if (name == "Where") return keep(node(op, {node("Greater", {a, b}), a, b}));
    if (name == "Div") return keep(node(op, {a, squashed(b, 1, 3)}));
    if (name == "Pow") return keep(node(op, {squashed(a, 0.5, 2), b}));
    if (name == "Clip") return keep(node(op, {a, number(-1), number(0.5)}));
    keep(node(op, {a, b}));
  }

  void reduction(Random& random, const std::string& value) {
    const Extents dims = extents(random, 1);
    Extents axes;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (below(random, 2) == 0)
        axes.push_back(static_cast<std::int64_t>(axis) -
                       (below(random, 2) == 0 ? static_cast<std::int64_t>(dims.size()) : 0));
    if (axes.empty()) axes.push_back(0);
    const auto op =
        oneOf<const char*>(random, {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                                    "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd", "Softmax", "LogSoftmax"});
    const std::string x = shaped(value, dims, -2, 2);
    if (std::string(op).ends_with("oftmax")) return keep(node(op, {x}, {{"axis", axes.front()}}));
    keep(node(op, {x, ints(axes)}, {{"keepdims", below(random, 2)}}));
  }

  template <typename Source>
  void movement(Random& random, const Source& source) {
    const Extents dims = extents(random, 1);
    const auto rank = static_cast<std::int64_t>(dims.size());
    const std::int64_t axis = below(random, rank), extent = dims[static_cast<std::size_t>(axis)];
    const std::string x = fitted(source(0), dims);
    switch (below(random, 8)) {
      case 0: {
        Extents perm(dims.size());
        for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
        for (std::size_t i = perm.size(); i > 1; --i)
          std::swap(perm[i - 1], perm[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(i)))]);
        return keep(node("Transpose", {x}, {{"perm", perm}}));
      }
      case 1: return keep(node("Concat", {x, fitted(source(1), dims), x}, {{"axis", axis}}));
      case 2: {
        const std::int64_t first = below(random, extent + 1);
        for (const std::string& part : nodes("Split", {x, ints({first, extent - first})}, 2, {{"axis", axis}}, ""))
          keep(part);
        return;
      }
      case 3: return keep(node("Gather", {x, ints({extent - 1, 0, -1})}, {{"axis", axis}}));
      case 4: return keep(node("Slice", {x, ints({-1}), ints({-extent - 1}), ints({axis}), ints({-1})}));
      case 5: {
        Extents pads(2 * dims.size(), 0);
        pads[static_cast<std::size_t>(axis)] = 1;
        pads.back() = below(random, 3);
        return keep(node("Pad", {x, ints(pads)}));
      }
      case 6: {
        Extents wider = dims;
        wider.insert(wider.begin(), 2);
        return keep(node("Expand", {x, ints(rank < 5 ? wider : dims)}));
      }
      default:
        return keep(node("CumSum", {x, constant(Tensor::scalar(DType::kI64, static_cast<double>(axis)))},
                         {{"reverse", below(random, 2)}}));
    }
  }

  template <typename Source>
  void branches(Random& random, const Source& source) {
    const Extents dims = extents(random, 0);
    const std::string x = shaped(source(0), dims, -1, 1), y = shaped(source(1), dims, -1, 1);
    const std::string sum = node("ReduceSum", {x}, {{"keepdims", std::int64_t{0}}});
    const std::string condition = node("Greater", {sum, number(0.0137)});  // sums that cancel are no coin
    const auto outputs = nodes("If", {condition}, 1, {}, "");
    onnx::NodeProto& proto = *graph_.mutable_node(graph_.node_size() - 1);
    const auto branch = [&](const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::GRAPH);
      attribute.mutable_g()->set_name(name);
      onnx::NodeProto& inner = *attribute.mutable_g()->add_node();
      inner.set_op_type(op);
      inner.set_name(name + std::to_string(made_));
      for (const std::string& input : inputs) inner.add_input(input);
      inner.add_output(outputs[0] + name);
      attribute.mutable_g()->add_output()->set_name(outputs[0] + name);
    };
    branch("then_branch", oneOf<const char*>(random, {"Mul", "Add", "Max"}), {x, y});
    branch("else_branch", oneOf<const char*>(random, {"Tanh", "Neg", "Identity"}), {oneOf<std::string>(random, {x, y})});
    keep(outputs[0]);
  }

  onnx::GraphProto& graph_;
  DType type_;
  std::vector<std::string> pool_;
  std::size_t made_ = 0;
};

}  // namespace

const std::vector<OpExample>& usableExamples() {
  static const std::vector<OpExample> usable = [] {
    std::vector<OpExample> all = allExamples();
    std::erase_if(all, [](const OpExample& example) { return !isUsable(example); });
    return all;
  }();
  return usable;
}

Network randomNetwork(std::uint64_t seed) {
  Random random(seed + 17);
  Network network{seed, below(random, 4) == 0, {}};
  const std::int64_t examples = static_cast<std::int64_t>(usableExamples().size());
  for (std::int64_t units = 2 + below(random, 9); units > 0; --units) {
    const bool fromExample = below(random, 2) == 0;
    Unit unit{
        static_cast<std::size_t>(fromExample ? below(random, examples) : examples + below(random, kShapes)), random(), {}};
    for (int i = 0; i < 3; ++i) unit.sources.push_back(static_cast<std::size_t>(random() % 1024));
    network.units.push_back(std::move(unit));
  }
  return network;
}

std::vector<std::string> parametersOf(const Network&) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < kParameters.size(); ++p) names.push_back("p" + std::to_string(p));
  return names;
}

onnx::ModelProto modelOf(const Network& network, DType type, std::uint64_t draw) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  for (const auto& [domain, version] : {std::pair("", kInternalOpset), std::pair("com.microsoft", 1)}) {
    auto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  model.mutable_graph()->set_name("random");
  Emitter emitter(*model.mutable_graph(), type);
  emitter.parameters(network, draw);
  for (const Unit& unit : network.units) emitter.unit(unit);
  emitter.loss(network);
  return model;
}

Network shrunk(Network network, const std::function<bool(const Network&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = network.units.size(); i-- > 0;) {
      Network without = network;
      without.units.erase(without.units.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails(without)) continue;
      network = std::move(without);
      smaller = true;
    }
  }
  return network;
}

}  // namespace stepscope::testing
