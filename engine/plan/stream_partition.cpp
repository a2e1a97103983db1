#include "engine/plan/stream_partition.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/ir/key_index.h"

namespace stepscope {
namespace {

using Json = nlohmann::json;

constexpr int kMostStreams = 8;  // of option cuda.streams
constexpr std::size_t kMostNodes = 10'000'000;

bool isChosen(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kKernel && !instruction.view && !instruction.onHost;
}

Result<int> streamNumber(const Json& json, const std::string& what, const std::string& at, int least, int most) {
  if (json.is_number_integer() && json >= least && json <= most) return json.get<int>();
  return invalid(fmt::format("streams '{}': {}: found {}; expected a whole number from {} to {}", what, at,
                             json.dump(-1, ' ', true, Json::error_handler_t::replace), least, most));
}

}  // namespace

Result<StreamPartition> parseStreamPartition(std::string_view text, const std::string& what) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    return invalid(
        fmt::format("streams '{}': found {}; expected an object", what, json.is_discarded() ? "no JSON" : json.type_name()));
  StreamPartition partition;
  for (const auto& [name, value] : json.items())
    if (name != "streams" && name != "nodes")
      return invalid(fmt::format("streams '{}': found '{}'; expected streams and nodes", what, name));
  if (!json.contains("streams")) return invalid(fmt::format("streams '{}': streams: found nothing; expected 1 to 8", what));
  SS_ASSIGN(partition.streams, streamNumber(json["streams"], what, "streams", 1, kMostStreams));
  const auto nodes = json.find("nodes");
  if (nodes == json.end() || !nodes->is_object() || nodes->size() > kMostNodes)
    return invalid(fmt::format("streams '{}': nodes: found {}; expected an object of keys and numbers", what,
                               nodes == json.end() ? "nothing" : nodes->type_name()));
  for (const auto& [key, stream] : nodes->items()) {
    if (key.empty()) return invalid(fmt::format("streams '{}': nodes: found an empty key; expected that of a node", what));
    SS_ASSIGN(partition.nodes[key], streamNumber(stream, what, fmt::format("node '{}'", key), 0, partition.streams - 1));
  }
  return partition;
}

Result<StreamPartition> readStreamPartition(const std::string& value) {
  if (value.starts_with('{')) return parseStreamPartition(value, "text");
  std::ifstream file(value, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, fmt::format("streams '{}': no such file; expected JSON", value));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parseStreamPartition(text, value);
}

StreamPartition streamsOf(const ExecutionPlan& plan, const Graph& graph) {
  const KeyIndex keys(graph);
  StreamPartition partition{plan.streams, {}};
  for (const Instruction& instruction : plan.instructions)
    if (isChosen(instruction))
      if (const NodeKey key = keys.keyOf(instruction.node)) partition.nodes[key.text()] = instruction.stream;
  return partition;
}

std::string streamPartitionText(const StreamPartition& partition) {
  Json json{{"streams", partition.streams}, {"nodes", Json::object()}};
  for (const auto& [key, stream] : partition.nodes) json["nodes"][key] = stream;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

AssignedStreams assignStreams(const ExecutionPlan& plan, const Graph& graph, const StreamPartition& partition) {
  const KeyIndex keys(graph);
  std::map<std::string_view, NodeId> named;
  for (const NodeId node : graph.order()) named.emplace(graph.node(node).name, node);
  AssignedStreams assigned{std::vector<int>(plan.instructions.size(), -1), {}};
  for (const auto& [text, stream] : partition.nodes) {
    const auto key = NodeKey::parse(text);
    NodeId node = key ? keys.find(*key) : NodeId{};
    if (const auto found = named.find(text); !node && found != named.end()) node = found->second;
    const int at = node ? plan.instructionOf(node) : -1;
    if (at < 0)
      assigned.unknown.push_back(text);
    else if (isChosen(plan.instructions[static_cast<std::size_t>(at)]))
      assigned.streams[static_cast<std::size_t>(at)] = stream;
  }
  return assigned;
}

}  // namespace stepscope
