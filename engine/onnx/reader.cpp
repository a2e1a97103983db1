#include "engine/onnx/reader.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <set>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/onnx/attribute_reader.h"
#include "engine/onnx/function_calls.h"
#include "engine/onnx/graph_reader.h"
#include "engine/onnx/node_metadata.h"
#include "engine/onnx/payloads.h"
#include "engine/onnx/prescan.h"
#include "engine/onnx/shared_initializers.h"
#include "engine/onnx/type_reader.h"
#include "engine/onnx/unknown_fields.h"

namespace stepscope {
namespace {

std::map<std::string, int> readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                                      const std::string& where, ProblemList& problems) {
  std::map<std::string, int> opsets;
  for (const auto& import : imports) {
    const std::string domain = normalisedDomain(import.domain());
    const bool standard = domain.empty();
    if (standard && (import.version() < limits::kMinOpset || import.version() > limits::kMaxOpset)) {
      problems.add(
          ErrorCode::kUnsupported, where,
          fmt::format("opset {}; this build reads {} to {}", import.version(), limits::kMinOpset, limits::kMaxOpset),
          "export again with another opset_version");
      // Kept within range so that the nodes' own problems are found too.
      opsets.emplace(domain, static_cast<int>(limits::kAssumedOpset));
      continue;
    }
    if (import.version() < 0 || import.version() > 1'000'000) {
      problems.add(ErrorCode::kInvalidArgument, where,
                   fmt::format("version {} of domain '{}'; expected a small number", import.version(), shownName(domain)));
      continue;
    }
    const auto [it, fresh] = opsets.emplace(domain, static_cast<int>(import.version()));
    if (!fresh && it->second != import.version())
      problems.add(
          ErrorCode::kInvalidArgument, where,
          fmt::format("versions {} and {} of domain '{}'; expected one", it->second, import.version(), shownName(domain)));
  }
  return opsets;
}

// Where the bytes of a model are: in memory, which is given back as they are read where it is `ours`, and in a file or none.
struct ModelBytes {
  const std::byte* begin = nullptr;
  bool ours = false;
  std::shared_ptr<const FileStamp> file;
};

class ModelReader {
 public:
  // `payloads`: what the proto lacks.
  ModelReader(onnx::ModelProto& proto, PayloadsByTensor payloads, ModelBytes bytes,
              std::vector<std::filesystem::path> folders, const LoadOptions& options, ProblemList& problems)
      : proto_(proto),
        payloads_(std::move(payloads)),
        bytes_(std::move(bytes)),
        options_(options),
        problems_(problems),
        files_(std::move(folders), options.mapWeights ? ExternalAccess::kMap : ExternalAccess::kRead) {}

  Status read(LoadedModel& model) {
    readHeader(model);
    if (!proto_.has_graph()) problems_.add(ErrorCode::kCorrupt, "model", "no graph; expected an ONNX model file");
    readFunctions(model);
    GraphReadContext context = contextWith(model.opsets, false, model.valueInfo);
    readSavedStage(context);
    context.payloads = &payloads_;
    const auto graph = readGraph(*proto_.mutable_graph(), context);
    checkFourBit();
    checkExternal(model);
    if (!problems_.empty()) return tl::make_unexpected(problems_.toError());
    readStateUpdates(*graph);
    readStatistics(*graph);
    SS_TRY(materialise(model));
    model.graph = std::move(*graph);
    for (std::size_t i = 0; i < bodies_.size(); ++i) model.functions[i].body = std::move(*bodies_[i]);
    if (const auto plan = planFunctions(model.graph, model.functions); !plan) {
      problems_.add(plan.error().code, "model", plan.error().message);
      return tl::make_unexpected(problems_.toError());
    }
    if (const std::size_t unknown = unknownExtents(proto_.graph()); unknown > 0)
      model.warnings.push_back({"model", fmt::format("{} declared extent{} -1, which is no extent: read as unknown", unknown,
                                                     unknown == 1 ? " is" : "s are")});
    for (auto& warning : sharedInitializerWarnings(model.graph)) model.warnings.push_back(std::move(warning));
    if (proto_.training_info_size() > 0)
      model.warnings.push_back({"model", "training_info of the file is not used: the training step is built here"});
    return {};
  }

 private:
  GraphReadContext contextWith(std::map<std::string, int> opsets, bool insideFunction,
                               std::map<std::string, ValueType>& valueInfo) {
    return {problems_, files_, std::move(opsets), functionDomains_, insideFunction, pending_, valueInfo};
  }

  void readHeader(LoadedModel& model) {
    if (proto_.ir_version() < limits::kMinIrVersion || proto_.ir_version() > limits::kMaxIrVersion)
      problems_.add(ErrorCode::kUnsupported, "model",
                    fmt::format("IR version {}; this build reads {} to {}", proto_.ir_version(), limits::kMinIrVersion,
                                limits::kMaxIrVersion));
    else
      model.irVersion = static_cast<int>(proto_.ir_version());
    model.producer = proto_.producer_name();
    if (!proto_.producer_version().empty()) model.producer += " " + proto_.producer_version();
    model.opsets = readOpsets(proto_.opset_import(), "model", problems_);
    for (const auto& entry : proto_.metadata_props()) model.metadata[entry.key()] = entry.value();
    for (const auto& [key, value] : unknownMetadata(proto_.graph(), kGraphMetadataField)) model.metadata.emplace(key, value);
    for (const auto& function : proto_.functions()) functionDomains_.insert(normalisedDomain(function.domain()));
  }

  void readFunctions(LoadedModel& model) {
    std::set<FunctionKey> keys;
    for (auto& proto : *proto_.mutable_functions()) {
      const std::string where = "function '" + shownName(proto.name()) + "'";
      Function function;
      function.domain = normalisedDomain(proto.domain());
      function.name = proto.name();
      function.overload = unknownString(proto, kFunctionOverloadField);
      if (function.name.empty())
        problems_.add(ErrorCode::kInvalidArgument, "model", "a function without a name; expected one");
      if (!keys.insert(keyOf(function)).second)
        problems_.add(ErrorCode::kInvalidArgument, where, "defined twice; expected one definition");
      function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
      std::map<std::string, int> opsets = readOpsets(proto.opset_import(), where, problems_);
      opsets.insert(model.opsets.begin(), model.opsets.end());
      std::map<std::string, ValueType> ignored;
      GraphReadContext context = contextWith(std::move(opsets), true, ignored);
      readDefaults(proto, where, function);
      bodies_.push_back(readFunctionBody(proto, context));
      model.functions.push_back(std::move(function));
    }
  }

  // attribute_proto came after the classes of this build.
  void readDefaults(const onnx::FunctionProto& proto, const std::string& where, Function& function) {
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> defaults;
    for (const auto& bytes : unknownMessages(proto, kFunctionAttributeField))
      if (!defaults.Add()->ParseFromString(bytes))
        problems_.add(ErrorCode::kCorrupt, where, "a default attribute that does not parse; expected an AttributeProto");
    Node holder;
    const AttributeContext context{problems_, files_, false, [&](onnx::GraphProto&, const std::string& place) {
                                     problems_.add(ErrorCode::kUnsupported, place,
                                                   "a graph as default attribute; expected a number, text or tensor");
                                     return std::shared_ptr<const Graph>();
                                   }};
    readAttributes(defaults, where, context, holder);
    function.attributeDefaults = std::move(holder.attrs);
  }

  void readSavedStage(GraphReadContext& context) {
    for (const auto& entry : proto_.metadata_props()) {
      const std::string& key = entry.key();
      const auto number = [](std::string_view text) {
        std::int64_t value = -1;
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
      };
      const std::int64_t bound = limits::kSavedIdFactor * proto_.graph().node_size() + limits::kSavedIdSlack;
      if (key == kCapacityKey) {
        const std::int64_t capacity = number(entry.value());
        if (capacity > 0 && capacity <= bound) context.nodeCapacity = static_cast<std::size_t>(capacity);
      } else if (key.starts_with(kRemovedKey)) {
        const std::int64_t id = number(std::string_view(key).substr(std::strlen(kRemovedKey)));
        if (id >= 0 && id < bound) context.removed[static_cast<std::int32_t>(id)] = entry.value();
      }
    }
  }

  void readStateUpdates(Graph& graph) {
    std::map<std::string, std::string> entries;
    for (const auto& entry : proto_.metadata_props())
      if (entry.key().starts_with(kUpdateKey)) entries[entry.key()] = entry.value();
    for (std::size_t i = 0;; ++i) {
      const auto state = entries.find(kUpdateKey + std::to_string(i) + ".state");
      const auto next = entries.find(kUpdateKey + std::to_string(i) + ".next");
      if (state == entries.end() || next == entries.end()) return;
      const ValueId stateId = graph.findValue(state->second);
      const ValueId nextId = graph.findValue(next->second);
      if (stateId && nextId) graph.stateUpdates.push_back({stateId, nextId});
    }
  }

  void readStatistics(Graph& graph) {
    const auto& entries = proto_.metadata_props();
    if (std::none_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.key() == kStatisticsKey && entry.value() == "pytorch"; }))
      return;
    for (const NodeId id : graph.order())
      if (const Node& node = graph.node(id);
          node.op == "BatchNormalization" && node.domain.empty() && node.attrs.integer("training_mode", 0) != 0)
        graph.mutableNode(id).attrs.set("sample_variance", std::int64_t{1});
  }

  // All ranges are checked against their files before the first byte of weights is read.
  void checkExternal(LoadedModel& model) {
    if (!options_.readWeights) return;
    for (PendingTensor& pending : pending_) {
      if (!pending.header.external) continue;
      const auto status = files_.check(pending.header.range, pending.header.bytes);
      if (status) continue;
      if (status.error().code == ErrorCode::kNotFound && options_.missingWeights == LoadOptions::MissingWeights::kRandom) {
        model.missingWeights.push_back(pending.proto->name());
        pending.proto = nullptr;
        continue;
      }
      problems_.add(status.error().code, "initializer '" + shownName(pending.proto->name()) + "'", status.error().message,
                    status.error().code == ErrorCode::kNotFound
                        ? "weights that are not there can be filled from the seed (--missing-weights random)"
                        : "");
    }
  }

  // Weights of four bits are whole bytes from here on. That is the same to DequantizeLinear, and to nothing else: what
  // rounds or saturates to four bits would do so to eight.
  void checkFourBit() {
    for (const PendingTensor& pending : pending_) {
      if (!pending.header.fourBit || !pending.value) continue;
      for (const NodeId id : pending.graph->order()) {
        const Node& node = pending.graph->node(id);
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
          if (node.inputs[i] == pending.value && !(node.op == "DequantizeLinear" && node.domain.empty() && i != 1))
            problems_.add(ErrorCode::kUnsupported, "initializer '" + shownName(pending.proto->name()) + "'",
                          fmt::format("four-bit elements read by {}; expected DequantizeLinear", node.label()));
      }
    }
  }

  // Elements of the tensor stand in the file as they stand in memory.
  static InitialContents::Source sourceOf(const PendingTensor& pending, std::shared_ptr<const FileStamp> file,
                                          std::int64_t offset) {
    if (!file) return nullptr;
    return [file = std::move(file), offset, name = shownName(pending.proto->name()), dtype = pending.header.dtype,
            dims = pending.header.dims]() -> Result<Tensor> {
      Tensor contents(dtype, dims);
      if (const Status read = file->read(offset, contents.data(), contents.bytes()); !read)
        return fail(read.error().code, fmt::format("initializer '{}': {}", name, read.error().message));
      return contents;
    };
  }

  Status materialise(LoadedModel& model) {
    const auto now = [] { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    model.weightsBegan = now();
    for (PendingTensor& pending : pending_) {
      SS_TRY(options_.cancel.check("load"));
      if (!pending.proto || (pending.header.external && !options_.readWeights)) continue;
      const TensorHeader& header = pending.header;
      InitialContents& contents = pending.graph->mutableValue(pending.value).data;
      if (header.external) {
        SS_ASSIGN(const auto block, files_.read(header.range, header.bytes));
        const auto [known, isNew] = external_.try_emplace(block.data);
        if (isNew) model.externalBytes += header.bytes;
        if (header.fourBit) {
          contents = std::make_shared<const Tensor>(widenFourBit(header, static_cast<const std::byte*>(block.data)));
        } else if (header.dtype == DType::kBool) {
          const Tensor bytes(header.dtype, header.dims, block.owner, block.data);
          contents = std::make_shared<const Tensor>(bytes.clone());
          normaliseBools(contents->view());
        } else if (known->second && known->second.dtype() == header.dtype && known->second.dims() == header.dims) {
          contents = known->second;
        } else {
          // Other extents of the same bytes are contents of their own: one of them may be trained.
          Tensor tensor(header.dtype, header.dims, block.owner, block.data);
          if (known->second) tensor = tensor.clone();
          contents =
              InitialContents(std::move(tensor), sourceOf(pending, files_.stampOf(header.range), header.range.offset));
          if (!known->second) known->second = contents;
        }
      } else {
        Tensor tensor = takeTensor(*pending.proto, header);
        if (header.raw.empty() || header.fourBit || header.dtype == DType::kBool)
          contents = std::make_shared<const Tensor>(std::move(tensor));
        else
          contents = InitialContents(std::move(tensor), sourceOf(pending, bytes_.file, header.raw.data() - bytes_.begin));
        if (bytes_.ours) releasePages(header.raw);
      }
      ++model.weightsRead;
    }
    model.externalFiles = files_.paths();
    model.weightsNs = now() - model.weightsBegan;
    return {};
  }

  onnx::ModelProto& proto_;
  const PayloadsByTensor payloads_;
  const ModelBytes bytes_;
  std::map<const void*, InitialContents> external_;  // by the memory that equal ranges share
  const LoadOptions& options_;
  ProblemList& problems_;
  ExternalFiles files_;
  std::set<std::string> functionDomains_;
  std::vector<PendingTensor> pending_;
  std::vector<std::shared_ptr<Graph>> bodies_;
};

// `owned` holds the bytes, when we do. They are as large as the model, so weights go from there into their tensors one by
// one, and the pages of each are given back: at no time is a second copy of all weights in memory. `file`: whose bytes they
// are; null: no file's.
Result<LoadedModel> read(std::vector<std::byte> owned, std::span<const std::byte> bytes,
                         std::shared_ptr<const FileStamp> file, std::vector<std::filesystem::path> folders,
                         const LoadOptions& options, std::vector<Problem>* problems) {
  ProblemList list;
  const auto finish = [&](Error error) -> Result<LoadedModel> {
    if (list.empty() && error.code != ErrorCode::kCancelled) list.add(error.code, "model", error.message);
    if (problems) *problems = list.problems();
    return tl::make_unexpected(std::move(error));
  };
  try {
    const auto report = prescanModel(bytes);
    if (!report) return finish(report.error());
    LoadedModel model;
    model.fileBytes = static_cast<std::int64_t>(bytes.size());
    onnx::ModelProto proto;
    {
      std::vector<std::byte> shortened;
      if (!report->payloads.empty()) shortened = withoutPayloads(bytes, report->payloads);
      const std::span<const std::byte> message = report->payloads.empty() ? bytes : std::span<const std::byte>(shortened);
      google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(message.data()),
                                                    static_cast<int>(message.size()));
      stream.SetRecursionLimit(limits::kMessageNesting);
      if (!proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
        return finish({ErrorCode::kCorrupt, "model: the bytes do not parse; expected an ONNX protobuf file"});
    }
    ModelBytes all{bytes.data(), !owned.empty(), std::move(file)};
    auto payloads = payloadsByTensor(proto.graph(), bytes, report->payloads);
    if (const auto status =
            ModelReader(proto, std::move(payloads), std::move(all), std::move(folders), options, list).read(model);
        !status)
      return finish(status.error());
    return model;
  } catch (const std::bad_alloc&) {
    return finish({ErrorCode::kOutOfMemory, "model: not enough memory to read it; expected a smaller model or more memory"});
  }
}

}  // namespace

Result<LoadedModel> loadModel(const std::filesystem::path& path, const LoadOptions& options,
                              std::vector<Problem>* problems) {
  auto stamp = FileStamp::of(path);  // before it is read: who writes meanwhile writes to another file
  auto bytes = readWholeFile(path, limits::kModelFileBytes, "model");
  if (!bytes) {
    if (bytes.error().code == ErrorCode::kLimitExceeded)
      bytes.error().message += "; larger models keep their weights in external data files";
    if (problems) *problems = {{bytes.error().code, "model", bytes.error().message, ""}};
    return tl::make_unexpected(bytes.error());
  }
  // The folder the path names and the folder of the file it links to (stores keep models as links to hashed files).
  std::vector<std::filesystem::path> folders{path.parent_path()};
  std::error_code error;
  if (const auto target = std::filesystem::canonical(path, error); !error) folders.push_back(target.parent_path());
  folders.insert(folders.end(), options.searchPaths.begin(), options.searchPaths.end());
  const std::span<const std::byte> view(*bytes);
  auto file = stamp ? std::make_shared<const FileStamp>(std::move(*stamp)) : nullptr;
  auto model = read(std::move(*bytes), view, std::move(file), std::move(folders), options, problems);
  // What is wrong with the file as a whole names the file.
  constexpr std::string_view kWhole = "model: ";
  if (!model && model.error().message.starts_with(kWhole)) {
    model.error().message = fmt::format("model '{}': {}", path.string(), model.error().message.substr(kWhole.size()));
    if (problems && problems->size() == 1 && problems->front().message.starts_with(kWhole))
      problems->front().message = model.error().message;
  }
  return model;
}

Result<LoadedModel> parseModel(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                               const LoadOptions& options, std::vector<Problem>* problems) {
  std::vector<std::filesystem::path> folders{folder};
  folders.insert(folders.end(), options.searchPaths.begin(), options.searchPaths.end());
  return read({}, bytes, nullptr, std::move(folders), options, problems);
}

}  // namespace stepscope
