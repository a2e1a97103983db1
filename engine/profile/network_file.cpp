#include "engine/profile/network_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepscope {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNetworkLevels = 8;
constexpr double kMostGroupRanks = 1 << 24;

class NetworkReader {
 public:
  explicit NetworkReader(const std::string& what) : what_(what) {}

  Result<NetworkFile> read(std::string_view text) const {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return wrong("", json.is_discarded() ? "no JSON" : json.type_name(), "an object");
    NetworkFile network;
    if (const auto name = json.find("name"); name != json.end() && name->is_string()) network.name = *name;
    if (json.contains("message_ns")) {
      SS_ASSIGN(network.messageNs, number(json, "message_ns", "message_ns", 0));
    }
    const auto levels = json.find("levels");
    if (levels == json.end() || !levels->is_array() || levels->empty() || levels->size() > kMostNetworkLevels)
      return wrong("levels", levels == json.end() ? "nothing" : levels->type_name(),
                   fmt::format("a list of 1 to {} levels, nearest first", kMostNetworkLevels));
    for (std::size_t i = 0; i < levels->size(); ++i) SS_TRY(add((*levels)[i], i, i + 1 == levels->size(), network));
    return network;
  }

 private:
  Status add(const Json& json, std::size_t index, bool last, NetworkFile& network) const {
    const std::string at = fmt::format("levels[{}]", index);
    if (!json.is_object()) return wrong(at, json.type_name(), "an object");
    const auto name = json.find("name");
    if (name == json.end() || !name->is_string()) return wrong(at + ".name", "no text", "the name of the level");
    NetworkLevel level{.name = name->get<std::string>()};
    SS_ASSIGN(level.latencyNs, number(json, "latency_ns", at + ".latency_ns", 0));
    SS_ASSIGN(level.bytesPerSecond, number(json, "bytes_per_second", at + ".bytes_per_second", 1));
    if (!last) {
      SS_ASSIGN(const double ranks, number(json, "ranks", at + ".ranks", 1));
      const std::int64_t before = network.levels.empty() ? 1 : network.levels.back().ranks;
      if (ranks != std::floor(ranks) || ranks > kMostGroupRanks || static_cast<std::int64_t>(ranks) % before != 0)
        return wrong(at + ".ranks", fmt::format("{}", ranks), fmt::format("a multiple of {} up to 2^24", before));
      level.ranks = static_cast<std::int64_t>(ranks);
    } else if (json.contains("ranks")) {
      return wrong(at + ".ranks", json["ranks"].dump(), "none at the last level, within which all ranks are");
    }
    network.levels.push_back(std::move(level));
    return {};
  }

  Result<double> number(const Json& of, const char* member, const std::string& at, double least) const {
    const auto found = of.find(member);
    const std::string expected = fmt::format("a number from {} on", least);
    if (found == of.end() || !found->is_number())
      return wrong(at, found == of.end() ? "nothing" : found->type_name(), expected);
    const double value = *found;
    if (!(value >= least) || !std::isfinite(value)) return wrong(at, found->dump(), expected);
    return value;
  }

  tl::unexpected<Error> wrong(const std::string& at, const std::string& found, const std::string& expected) const {
    return invalid(
        fmt::format("network '{}'{}: found {}; expected {}", what_, at.empty() ? "" : ": " + at, found, expected));
  }

  const std::string& what_;
};

}  // namespace

Result<NetworkFile> parseNetwork(std::string_view text, const std::string& what) { return NetworkReader(what).read(text); }

}  // namespace stepscope
