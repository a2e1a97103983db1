#include "engine/onnx/node_metadata.h"

#include <charconv>

namespace stepscope {
namespace {

constexpr const char* kIdKey = "stepscope.id";
constexpr const char* kPhaseKey = "stepscope.phase";
constexpr const char* kSinceKey = "stepscope.since";
constexpr const char* kPassKey = "stepscope.pass";
constexpr const char* kSourcesKey = "stepscope.sources";
constexpr const char* kImportedKey = "stepscope.imported";
constexpr const char* kForwardKey = "stepscope.forward";
constexpr const char* kModuleKey = "stepscope.module";
constexpr const char* kInferredKey = "stepscope.module_inferred";
constexpr const char* kFileKey = "stepscope.source_file";
constexpr const char* kLineKey = "stepscope.source_line";
constexpr const char* kCodeKey = "stepscope.source_code";
constexpr const char* kPredicateKey = "stepscope.predicate.";  // + index: '+' or '-' and the name of the condition

const std::string* find(const Metadata& metadata, const std::string& key) {
  const auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

std::optional<std::int32_t> number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

NodeId idWithin(const std::string* text, std::size_t capacity) {
  if (!text) return {};
  const auto value = number(*text);
  return value && static_cast<std::size_t>(*value) < capacity ? NodeId{*value} : NodeId{};
}

}  // namespace

std::optional<std::int32_t> savedNodeId(const Metadata& metadata) {
  const std::string* text = find(metadata, kIdKey);
  return text ? number(*text) : std::nullopt;
}

void writeNodeMetadata(const Graph& graph, const Node& node, onnx::NodeProto& proto) {
  const Provenance& provenance = node.provenance;
  const auto put = [&](const std::string& key, std::string_view value) {
    if (!value.empty()) addUnknownMetadata(proto, kNodeMetadataField, key, std::string(value));
  };
  put(kIdKey, std::to_string(node.id.index));
  put(kPhaseKey, std::string(phaseName(node.phase)));
  put(kSinceKey, std::to_string(node.sinceVersion));
  put(kPassKey, provenance.pass);
  std::string sources;
  for (const NodeId source : provenance.sources) sources += (sources.empty() ? "" : ",") + std::to_string(source.index);
  put(kSourcesKey, sources);
  if (provenance.imported) put(kImportedKey, std::to_string(provenance.imported.index));
  if (provenance.forward) put(kForwardKey, std::to_string(provenance.forward.index));
  put(kModuleKey, provenance.modulePath);
  if (provenance.modulePathInferred) put(kInferredKey, "1");
  put(kFileKey, provenance.sourceFile);
  if (provenance.sourceLine > 0) put(kLineKey, std::to_string(provenance.sourceLine));
  put(kCodeKey, provenance.sourceCode);
  for (std::size_t i = 0; i < node.predicates.size(); ++i)
    put(kPredicateKey + std::to_string(i),
        (node.predicates[i].expected ? "+" : "-") + graph.value(node.predicates[i].condition).name);
}

std::vector<NamedPredicate> readNodeMetadata(const Metadata& metadata, std::size_t capacity, Node& node) {
  if (!savedNodeId(metadata)) return {};
  Provenance& provenance = node.provenance;
  provenance = {};
  const auto text = [&](const char* key) {
    const std::string* value = find(metadata, key);
    return value ? *value : std::string();
  };
  const std::string phase = text(kPhaseKey);
  for (const Phase candidate : {Phase::kForward, Phase::kBackward, Phase::kRecompute, Phase::kOptimizer})
    if (phase == phaseName(candidate)) node.phase = candidate;
  node.sinceVersion = number(text(kSinceKey)).value_or(node.sinceVersion);
  provenance.pass = InternedText(text(kPassKey));
  const std::string sources = text(kSourcesKey);
  for (std::size_t begin = 0; begin < sources.size();) {
    const std::size_t end = std::min(sources.find(',', begin), sources.size());
    const std::string item = sources.substr(begin, end - begin);
    if (const NodeId id = idWithin(&item, capacity)) provenance.sources.push_back(id);
    begin = end + 1;
  }
  provenance.imported = idWithin(find(metadata, kImportedKey), capacity);
  provenance.forward = idWithin(find(metadata, kForwardKey), capacity);
  provenance.modulePath = InternedText(text(kModuleKey));
  provenance.modulePathInferred = find(metadata, kInferredKey) != nullptr;
  provenance.sourceFile = InternedText(text(kFileKey));
  provenance.sourceLine = number(text(kLineKey)).value_or(0);
  provenance.sourceCode = InternedText(text(kCodeKey));
  std::vector<NamedPredicate> predicates;
  while (const std::string* value = find(metadata, kPredicateKey + std::to_string(predicates.size()))) {
    if (value->size() < 2) break;
    predicates.push_back({value->substr(1), value->front() == '+'});
  }
  return predicates;
}

}  // namespace stepscope
