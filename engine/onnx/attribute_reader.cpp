#include "engine/onnx/attribute_reader.h"

#include <fmt/format.h>

#include <set>

#include "engine/data/limits.h"
#include "engine/onnx/tensor_reader.h"

namespace stepscope {
namespace {

using onnx::AttributeProto;

constexpr const char* kTypeNames[] = {"undefined",      "float",      "int",        "string",  "tensor", "graph",
                                      "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
                                      "sparse_tensors", "type_proto", "type_protos"};

// The AttributeType numbers (of onnx.proto) whose fields are filled, as a bit set.
unsigned filledTypes(const AttributeProto& proto) {
  unsigned filled = 0;
  const auto mark = [&](AttributeProto::AttributeType type, bool present) { filled |= present ? 1u << type : 0u; };
  mark(AttributeProto::FLOAT, proto.has_f());
  mark(AttributeProto::INT, proto.has_i());
  mark(AttributeProto::STRING, proto.has_s());
  mark(AttributeProto::TENSOR, proto.has_t());
  mark(AttributeProto::GRAPH, proto.has_g());
  mark(AttributeProto::FLOATS, proto.floats_size() > 0);
  mark(AttributeProto::INTS, proto.ints_size() > 0);
  mark(AttributeProto::STRINGS, proto.strings_size() > 0);
  mark(AttributeProto::TENSORS, proto.tensors_size() > 0);
  mark(AttributeProto::GRAPHS, proto.graphs_size() > 0);
  mark(AttributeProto::SPARSE_TENSOR, proto.has_sparse_tensor());
  mark(AttributeProto::SPARSE_TENSORS, proto.sparse_tensors_size() > 0);
  mark(AttributeProto::TYPE_PROTO, proto.has_tp());
  mark(AttributeProto::TYPE_PROTOS, proto.type_protos_size() > 0);
  return filled;
}

// The declared type, or the only filled one for files of IR 1 and 2 writers that left it out; 0 when neither is clear.
int typeOf(const AttributeProto& proto, unsigned filled) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (filled == 0 || (filled & (filled - 1)) != 0) return 0;
  return __builtin_ctz(filled);
}

Result<Tensor> readTensor(onnx::TensorProto& proto, const std::string& where, ExternalFiles& files) {
  ProblemList problems;
  TensorHeader header;
  if (!readTensorHeader(proto, where, problems, header)) return tl::make_unexpected(problems.toError());
  if (!header.external) return takeTensor(proto, header);
  SS_TRY(files.check(header.range, header.bytes));
  SS_ASSIGN(const auto block, files.read(header.range, header.bytes));
  Tensor tensor = Tensor(header.dtype, header.dims, block.owner, block.data).clone();
  normaliseBools(tensor.view());
  return tensor;
}

class Reader {
 public:
  Reader(const std::string& where, const AttributeContext& context, Node& node)
      : where_(where), context_(context), node_(node) {}

  void read(AttributeProto& proto) {
    const std::string& name = proto.name();
    if (name.empty()) return problem("attribute without a name; expected one");
    if (!seen_.insert(name).second) return problem(quoted(name) + " given twice; expected once");
    if (!proto.ref_attr_name().empty()) {
      if (!context_.insideFunction)
        return problem(quoted(name) + " refers to a function's attribute outside a function; expected a value");
      node_.attributeReferences.edit()[name] = proto.ref_attr_name();
      return;
    }
    const unsigned filled = filledTypes(proto);
    const int type = typeOf(proto, filled);
    if (type < AttributeProto::FLOAT || type > AttributeProto::TYPE_PROTOS)
      return problem(quoted(name) +
                     " has no clear type; expected one of float, int, string, tensor, graph and lists of these");
    if (const unsigned others = filled & ~(1u << type); others != 0)
      return problem(fmt::format("{} of type {} holds {}; expected only what its type says", quoted(name), kTypeNames[type],
                                 kTypeNames[__builtin_ctz(others)]));
    value(name, type, proto);
  }

 private:
  static std::string quoted(const std::string& name) { return "attribute '" + shownName(name) + "'"; }
  void problem(std::string message, ErrorCode code = ErrorCode::kInvalidArgument) {
    context_.problems.add(code, where_, std::move(message));
  }
  std::optional<Tensor> tensor(const std::string& name, onnx::TensorProto& proto) {
    auto result = readTensor(proto, where_ + " " + quoted(name), context_.files);
    if (result) return std::move(*result);
    context_.problems.add(result.error().code, where_, quoted(name) + ": " + result.error().message);
    return std::nullopt;
  }

  void value(const std::string& name, int type, AttributeProto& proto) {
    Attributes& attrs = node_.attrs;
    switch (type) {
      case AttributeProto::FLOAT: return attrs.set(name, proto.f());
      case AttributeProto::INT: return attrs.set(name, static_cast<std::int64_t>(proto.i()));
      case AttributeProto::STRING: return attrs.set(name, proto.s());
      case AttributeProto::FLOATS: return attrs.set(name, std::vector<float>(proto.floats().begin(), proto.floats().end()));
      case AttributeProto::INTS: return attrs.set(name, std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end()));
      case AttributeProto::STRINGS:
        return attrs.set(name, std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
      case AttributeProto::TENSOR:
        if (!proto.has_t()) return problem(quoted(name) + " of type tensor is empty; expected a tensor");
        if (auto read = tensor(name, *proto.mutable_t())) attrs.set(name, std::move(*read));
        return;
      case AttributeProto::TENSORS: {
        std::vector<Tensor> tensors;
        for (auto& item : *proto.mutable_tensors())
          if (auto read = tensor(name, item)) tensors.push_back(std::move(*read));
        return attrs.set(name, std::move(tensors));
      }
      case AttributeProto::GRAPH:
        if (!proto.has_g()) return problem(quoted(name) + " of type graph is empty; expected a graph");
        if (auto graph = context_.readSubgraph(*proto.mutable_g(), where_ + " " + quoted(name)))
          node_.subgraphs.edit()[name] = graph;
        return;
      default:
        return problem(
            fmt::format("{} of type {}; expected a number, text, tensor, graph or a list of numbers, texts or tensors",
                        quoted(name), kTypeNames[type]),
            ErrorCode::kUnsupported);
    }
  }

  const std::string& where_;
  const AttributeContext& context_;
  Node& node_;
  std::set<std::string> seen_;
};

}  // namespace

void readAttributes(google::protobuf::RepeatedPtrField<AttributeProto>& protos, const std::string& where,
                    const AttributeContext& context, Node& node) {
  Reader reader(where, context, node);
  for (auto& proto : protos) reader.read(proto);
  normaliseConstant(node);
}

void normaliseConstant(Node& node) {
  if (node.op != "Constant" || !node.domain.empty() || node.attrs.has("value")) return;
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& [name, value] : node.attrs.entries()) {
    if (name == "value_int" && std::holds_alternative<std::int64_t>(value))
      found.emplace_back(name, Tensor::of<std::int64_t>({}, std::span(&std::get<std::int64_t>(value), 1)));
    else if (name == "value_float" && std::holds_alternative<float>(value))
      found.emplace_back(name, Tensor::of<float>({}, std::span(&std::get<float>(value), 1)));
    else if (name == "value_string" && std::holds_alternative<std::string>(value))
      found.emplace_back(name, Tensor::strings({}, {std::get<std::string>(value)}));
    else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value); name == "value_ints" && ints)
      found.emplace_back(name, Tensor::ints(*ints));
    else if (const auto* floats = std::get_if<std::vector<float>>(&value); name == "value_floats" && floats)
      found.emplace_back(name,
                         Tensor::of<float>({static_cast<std::int64_t>(floats->size())}, std::span<const float>(*floats)));
    else if (const auto* texts = std::get_if<std::vector<std::string>>(&value); name == "value_strings" && texts)
      found.emplace_back(name, Tensor::strings({static_cast<std::int64_t>(texts->size())}, *texts));
  }
  if (found.size() != 1) return;  // none or several: the check of required attributes names it
  node.attrs.erase(found.front().first);
  node.attrs.set("value", std::move(found.front().second));
}

}  // namespace stepscope
