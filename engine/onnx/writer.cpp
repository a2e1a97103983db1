#include "engine/onnx/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/onnx/function_calls.h"
#include "engine/onnx/node_metadata.h"
#include "engine/onnx/problem.h"
#include "engine/onnx/tensor_pb.h"
#include "engine/onnx/type_reader.h"
#include "engine/onnx/unknown_fields.h"

namespace stepscope {
namespace {

constexpr std::int64_t kIrVersion = 10;  // the first with metadata_props of nodes
constexpr std::int64_t kExternalAlignment = 4'096;
constexpr const char* kZerosSuffix = ".zeros";

void addEntry(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& entries, std::string key,
              std::string value) {
  auto* entry = entries.Add();
  entry->set_key(std::move(key));
  entry->set_value(std::move(value));
}

// How many inputs() of a subgraph are formal; the rest are values captured by name.
std::size_t formalInputs(const Node& node, const Graph& subgraph) {
  const bool hasFormals = node.domain.empty() && (node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap");
  return hasFormals ? std::min(node.inputs.size(), subgraph.inputs().size()) : 0;
}

bool isStored(const Graph& graph, const Value& value) {
  return graph.alive(value.id) &&
         (value.role == ValueRole::kInitializer || value.role == ValueRole::kState || value.role == ValueRole::kConstant);
}

std::int64_t weightBytes(const Graph& graph) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<std::int32_t>(i)});
    if (isStored(graph, value) && value.data) total += static_cast<std::int64_t>(value.data.bytes());
  }
  return total;
}

class Writer {
 public:
  Writer(const std::filesystem::path& path, const WriteOptions& options)
      : stem_(path.stem().string()),
        externalName_(options.externalName.empty() ? stem_ + ".weights" : options.externalName),
        external_(path.parent_path() / externalName_) {}

  Status write(const Graph& graph, const std::filesystem::path& path, const WriteOptions& options) {
    onnx::ModelProto model;
    model.set_ir_version(kIrVersion);
    model.set_producer_name(options.producer);
    useExternal_ = weightBytes(graph) > options.externalAbove;
    if (useExternal_) SS_TRY(external_.open());
    SS_TRY(writeGraph(graph, *model.mutable_graph(), graph.inputs().size(), true));
    writeStage(graph, model);
    for (const auto& [domain, version] : graph.opsets)
      if (!domain.empty()) domains_.emplace(domain, version);
    const auto imported = graph.opsets.find("");
    const int standard = std::max(standardVersion_, imported == graph.opsets.end() ? 0 : imported->second);
    domains_[""] = standard > 0 ? standard : static_cast<int>(limits::kAssumedOpset);
    for (const auto& [domain, version] : domains_) {
      auto* import = model.add_opset_import();
      import->set_domain(domain);
      const auto known = graph.opsets.find(domain);
      import->set_version(domain.empty() || known == graph.opsets.end() ? version : known->second);
    }
    if (model.ByteSizeLong() > static_cast<std::size_t>(limits::kModelFileBytes))
      return fail(ErrorCode::kLimitExceeded,
                  fmt::format("model '{}': {} bytes without external weights; at most {} can be one protobuf message",
                              shownName(path.filename().string()), model.ByteSizeLong(), limits::kModelFileBytes));
    AtomicFile file(path);
    SS_TRY(file.open());
    if (!model.SerializeToFileDescriptor(file.descriptor())) return file.failure();
    if (useExternal_) SS_TRY(external_.commit());
    if (zeroBytes_ > 0) SS_TRY(writeZeros(path.parent_path() / (stem_ + kZerosSuffix)));
    return file.commit();
  }

 private:
  Status writeGraph(const Graph& graph, onnx::GraphProto& proto, std::size_t formals, bool isMain) {
    proto.set_name(graph.name.empty() ? "graph" : graph.name);
    for (std::size_t i = 0; i < formals; ++i) writeInfo(graph.value(graph.inputs()[i]), *proto.add_input());
    for (const ValueId output : graph.outputs()) writeInfo(graph.value(output), *proto.add_output());
    for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
      const Value& value = graph.value(ValueId{static_cast<std::int32_t>(i)});
      if (isStored(graph, value))
        SS_TRY(writeInitializer(value, *proto.add_initializer()));
      else if (isMain && graph.alive(value.id) && value.role == ValueRole::kInput &&
               std::find(graph.inputs().begin(), graph.inputs().end(), value.id) == graph.inputs().end())
        writeInfo(value, *proto.add_input());
      else if (graph.alive(value.id) && value.role == ValueRole::kNodeOutput && value.type.dtype != DType::kUndefined &&
               std::find(graph.outputs().begin(), graph.outputs().end(), value.id) == graph.outputs().end())
        writeInfo(value, *proto.add_value_info());
    }
    for (const NodeId id : graph.order()) SS_TRY(writeNode(graph, graph.node(id), *proto.add_node()));
    return {};
  }

  static void writeInfo(const Value& value, onnx::ValueInfoProto& info) {
    info.set_name(value.name);
    if (value.type.dtype != DType::kUndefined) valueTypeToProto(value.type, *info.mutable_type());
  }

  Status writeInitializer(const Value& value, onnx::TensorProto& proto) {
    if (value.role != ValueRole::kInitializer)
      addUnknownMetadata(proto, kTensorMetadataField, kRoleKey, value.role == ValueRole::kState ? "state" : "constant");
    Tensor contents;
    if (value.data) {
      auto read = value.data.read();
      if (!read) return fail(read.error().code, fmt::format("value '{}': {}", shownName(value.name), read.error().message));
      contents = std::move(*read);
    }
    if (value.data && !(useExternal_ && contents.dtype() != DType::kString)) {
      tensorToProto(contents.view(), proto);
      proto.set_name(value.name);
      return {};
    }
    proto.set_name(value.name);
    const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
    if (!dims || value.type.dtype == DType::kUndefined)
      return invalid("value '" + shownName(value.name) + "': type " + value.type.text() +
                     "; expected known extents for stored state");
    proto.set_data_type(static_cast<int>(value.type.dtype));
    for (const std::int64_t extent : *dims) proto.add_dims(extent);
    proto.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
    auto& entries = *proto.mutable_external_data();
    if (!value.data && value.role == ValueRole::kState) {
      const std::int64_t bytes = elementCount(*dims) * static_cast<std::int64_t>(dtypeSize(value.type.dtype));
      const auto [range, isNew] = zeroRanges_.emplace(bytes, zeroBytes_);
      if (isNew) zeroBytes_ += bytes;
      addEntry(entries, "location", stem_ + kZerosSuffix);
      addEntry(entries, "offset", std::to_string(range->second));
      addEntry(entries, "length", std::to_string(bytes));
      return {};
    }
    if (!value.data) {
      addEntry(entries, "location", stem_ + ".missing");
      return {};
    }
    const TensorView& view = contents.view();
    SS_ASSIGN(const std::int64_t offset, external_.appendAligned(view.data, view.bytes(), kExternalAlignment));
    addEntry(entries, "location", externalName_);
    addEntry(entries, "offset", std::to_string(offset));
    addEntry(entries, "length", std::to_string(view.bytes()));
    return {};
  }

  Status writeZeros(const std::filesystem::path& path) const {
    AtomicFile zeros(path);
    SS_TRY(zeros.open());
    if (ftruncate(zeros.descriptor(), zeroBytes_) != 0) return zeros.failure();
    return zeros.commit();
  }

  Status writeNode(const Graph& graph, const Node& node, onnx::NodeProto& proto) {
    describeNode(graph, node, proto);
    const auto nameOf = [&](ValueId id) { return id ? graph.value(id).name : std::string(); };
    for (const ValueId input : node.inputs) proto.add_input(nameOf(input));
    for (const ValueId output : node.outputs) proto.add_output(nameOf(output));
    if (!node.attributeReferences.empty())
      return invalid(node.label() + ": attribute '" + node.attributeReferences.begin()->first +
                     "' refers to a function's; expected inlined functions");
    for (const auto& [name, value] : node.attrs.entries())
      if (name != kOverloadAttribute) attributeToProto(name, value, *proto.add_attribute());
    if (const std::string overload = node.attrs.text(kOverloadAttribute, ""); !overload.empty())
      proto.GetReflection()->MutableUnknownFields(&proto)->AddLengthDelimited(kNodeOverloadField, overload);
    for (const auto& [name, subgraph] : node.subgraphs) {
      auto* attribute = proto.add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      SS_TRY(writeGraph(*subgraph, *attribute->mutable_g(), formalInputs(node, *subgraph), false));
    }
    domains_.emplace(node.domain, 1);
    if (node.domain.empty()) standardVersion_ = std::max(standardVersion_, node.sinceVersion);
    return {};
  }

  static void describeNode(const Graph& graph, const Node& node, onnx::NodeProto& proto) {
    proto.set_name(node.name);
    proto.set_op_type(node.op);
    if (!node.domain.empty()) proto.set_domain(node.domain);
    writeNodeMetadata(graph, node, proto);
  }

  static void writeStage(const Graph& graph, onnx::ModelProto& model) {
    auto& entries = *model.mutable_metadata_props();
    addEntry(entries, kCapacityKey, std::to_string(graph.nodeCapacity()));
    for (std::size_t i = 0; i < graph.nodeCapacity(); ++i) {
      const Node& node = graph.node(NodeId{static_cast<std::int32_t>(i)});
      if (graph.alive(node.id)) continue;
      onnx::NodeProto proto;
      Node plain = node;
      plain.predicates.clear();  // their conditions may be gone
      describeNode(graph, plain, proto);
      addEntry(entries, kRemovedKey + std::to_string(i), proto.SerializeAsString());
    }
    for (std::size_t i = 0; i < graph.stateUpdates.size(); ++i) {
      addEntry(entries, kUpdateKey + std::to_string(i) + ".state", graph.value(graph.stateUpdates[i].state).name);
      addEntry(entries, kUpdateKey + std::to_string(i) + ".next", graph.value(graph.stateUpdates[i].next).name);
    }
  }

  std::string stem_;
  std::string externalName_;
  AtomicFile external_;
  bool useExternal_ = false;
  std::map<std::int64_t, std::int64_t>
      zeroRanges_;  // bytes of state that starts as zeros → offset; ranges may not overlap in part
  std::int64_t zeroBytes_ = 0;
  std::map<std::string, int> domains_;
  int standardVersion_ = 0;
};

}  // namespace

Status writeModel(const Graph& graph, const std::filesystem::path& path, const WriteOptions& options) {
  return Writer(path, options).write(graph, path, options);
}

}  // namespace stepscope
