#include "engine/profile/machine_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepscope {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostLevels = 8;

class Reader {
 public:
  explicit Reader(const std::string& what) : what_(what) {}

  Result<std::unique_ptr<MachineFile>> read(std::string_view text) const {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return wrong("", json.is_discarded() ? "no JSON" : kind(json), "an object");
    auto machine = std::make_unique<MachineFile>();
    if (const auto name = json.find("name"); name != json.end() && name->is_string()) machine->name = *name;
    if (json.contains("memory_bytes")) {
      SS_ASSIGN(machine->memoryBytes, whole(json, "memory_bytes", "memory_bytes"));
    }
    const auto peak = json.find("peak");
    if (peak == json.end() || !peak->is_object())
      return wrong("peak", peak == json.end() ? "nothing" : kind(*peak), "an object");
    SS_ASSIGN(machine->peak.operationsPerSecond, number(*peak, "operations_per_second", "peak.operations_per_second"));
    if (const auto low = peak->find("bfloat16_operations_per_second"); low != peak->end() && *low != 0) {
      SS_ASSIGN(machine->peak.bfloat16PerSecond,
                number(*peak, "bfloat16_operations_per_second", "peak.bfloat16_operations_per_second"));
    }
    if (peak->contains("threads")) {
      SS_ASSIGN(const std::int64_t threads, whole(*peak, "threads", "peak.threads"));
      machine->peak.threads = static_cast<int>(std::min<std::int64_t>(threads, 1 << 20));
    }
    const auto levels = peak->find("levels");
    if (levels == peak->end() || !levels->is_array() || levels->empty() || levels->size() > kMostLevels)
      return wrong("peak.levels", levels == peak->end() ? "nothing" : kind(*levels),
                   fmt::format("a list of 1 to {} levels, fastest first", kMostLevels));
    for (std::size_t i = 0; i < levels->size(); ++i) SS_TRY(addLevel((*levels)[i], i, i + 1 == levels->size(), *machine));
    return machine;
  }

 private:
  Status addLevel(const Json& json, std::size_t index, bool last, MachineFile& machine) const {
    const std::string at = fmt::format("peak.levels[{}]", index);
    if (!json.is_object()) return wrong(at, kind(json), "an object");
    const auto name = json.find("name");
    if (name == json.end() || !name->is_string()) return wrong(at + ".name", "no text", "the name of the level");
    cpu::MemoryLevel level;
    machine.levelNames.push_back(std::make_unique<std::string>(name->get<std::string>()));
    level.name = *machine.levelNames.back();
    SS_ASSIGN(level.bytesPerSecond, number(json, "bytes_per_second", at + ".bytes_per_second"));
    if (!last) {
      SS_ASSIGN(level.capacity, whole(json, "capacity", at + ".capacity"));
    }
    machine.peak.levels.push_back(level);
    return {};
  }

  Result<double> number(const Json& of, const char* member, const std::string& at) const {
    const auto found = of.find(member);
    if (found == of.end() || !found->is_number()) return wrong(at, found == of.end() ? "nothing" : kind(*found), kAbove);
    const double value = *found;
    if (!(value > 0) || !std::isfinite(value)) return wrong(at, found->dump(), kAbove);
    return value;
  }
  Result<std::int64_t> whole(const Json& of, const char* member, const std::string& at) const {
    SS_ASSIGN(const double value, number(of, member, at));
    if (value > 9e18) return wrong(at, fmt::format("{}", value), "fewer bytes than 2^63");
    return static_cast<std::int64_t>(value);
  }

  static std::string kind(const Json& json) { return json.type_name(); }
  tl::unexpected<Error> wrong(const std::string& at, const std::string& found, const std::string& expected) const {
    return invalid(
        fmt::format("machine '{}'{}: found {}; expected {}", what_, at.empty() ? "" : ": " + at, found, expected));
  }

  static constexpr const char* kAbove = "a number above 0";
  const std::string& what_;
};

}  // namespace

Result<std::unique_ptr<MachineFile>> parseMachine(std::string_view text, const std::string& what) {
  return Reader(what).read(text);
}

}  // namespace stepscope
