#include "engine/state/state_file.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/data/safetensors.h"
#include "kernels/rank_part.h"

namespace stepscope {
namespace {

constexpr std::int64_t kStateVersion = 1;  // a file without one is of version 1
// + name: the updates that this state has had, where they are not those of the run.
constexpr std::string_view kUpdatesOf = "stepscope.updates_of.";

Result<double> realOf(const std::filesystem::path& path, const std::string& key, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0))
    return invalid(fmt::format("state '{}': '{}' is '{}'; expected a number of at least 0", path.string(), key, text));
  return number;
}

Result<StateCounters> countersOf(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                                 const std::set<std::string>& names) {
  const auto number = [&](const char* key, std::int64_t& target) -> Status {
    const auto it = metadata.find(key);
    if (it == metadata.end())
      return invalid(
          fmt::format("state '{}': no '{}' in its metadata; expected a file written by --save", path.string(), key));
    const std::string& text = it->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), target);
    if (error != std::errc() || end != text.data() + text.size() || target < 0)
      return invalid(fmt::format("state '{}': '{}' is '{}'; expected a number", path.string(), key, text));
    return {};
  };
  std::int64_t version = kStateVersion;
  if (metadata.contains("stepscope.version")) SS_TRY(number("stepscope.version", version));
  if (version > kStateVersion)
    return unsupported(
        fmt::format("state '{}': version {}; this build reads up to {}", path.string(), version, kStateVersion));
  StateCounters counters;
  SS_TRY(number("stepscope.step", counters.step));
  SS_TRY(number("stepscope.updates", counters.updates));
  SS_TRY(number("stepscope.micro", counters.micro));
  if (const auto factor = metadata.find("stepscope.loss_scale"); factor != metadata.end()) {
    SS_ASSIGN(counters.lossScale.factor, realOf(path, factor->first, factor->second));
    SS_TRY(number("stepscope.loss_scale_clean", counters.lossScale.cleanUpdates));
  }
  counters.entry = counters.step;
  if (metadata.contains("stepscope.entry")) SS_TRY(number("stepscope.entry", counters.entry));
  if (metadata.contains("stepscope.updates_before")) SS_TRY(number("stepscope.updates_before", counters.updatesBefore));
  if (metadata.contains("stepscope.round_of")) SS_TRY(number("stepscope.round_of", counters.roundOf));
  if (const auto scale = metadata.find("stepscope.sum_scale"); scale != metadata.end()) {
    SS_ASSIGN(counters.sumScale, realOf(path, scale->first, scale->second));
  }
  auto ages = std::make_shared<MomentAges>();
  ages->asOf = counters.updates;
  for (const std::string& name : names) ages->counts[name] = counters.updates;
  for (const auto& [key, text] : metadata)
    if (key.starts_with(kUpdatesOf)) SS_TRY(number(key.c_str(), ages->counts[key.substr(kUpdatesOf.size())]));
  counters.moments = std::move(ages);
  return counters;
}

// Parameters are kept in the type that option master-weights asks for, so a file may have them in another one.
bool canBeRead(DType from, DType to) { return from == to || (isFloating(from) && isFloating(to)); }

// Whether of this tensor of the file a part is taken: optimizer state, unless the state has a whole already; parameters
// where the state has a part.
bool isCut(const std::string& name, const SafetensorsEntry& tensor, const Graph& imported, const State& state,
           const StatePart& part) {
  if (part.ranks == 1) return false;
  const Tensor* present = state.find(name);
  if (present) return present->dims() != tensor.dims;
  const ValueId id = imported.findValue(name);
  return !id || imported.value(id).role != ValueRole::kInitializer;
}

Status fitsState(const std::string& name, const SafetensorsEntry& tensor, const Graph& imported, const State& state,
                 const StatePart& part) {
  if (const Tensor* present = state.find(name)) {
    const bool cut = isCut(name, tensor, imported, state, part);
    const Dims dims = cut ? Dims{partLength(elementCount(tensor.dims), part.ranks)} : tensor.dims;
    if (canBeRead(tensor.dtype, present->dtype()) && present->dims() == dims) return {};
    return invalid(fmt::format("state '{}': file has {}{}; expected {}{}", name, dtypeName(tensor.dtype),
                               dimsText(tensor.dims), dtypeName(present->dtype()), dimsText(present->dims())));
  }
  const ValueId id = imported.findValue(name);
  if (!id || imported.value(id).role != ValueRole::kInitializer) return {};
  const Value& value = imported.value(id);
  const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
  if (canBeRead(tensor.dtype, value.type.dtype) && (!dims || *dims == tensor.dims)) return {};
  return invalid(fmt::format("parameter '{}': file has {}{}; expected {}", name, dtypeName(tensor.dtype),
                             dimsText(tensor.dims), value.type.text()));
}

Result<PropertyBag> propertiesOf(const SafetensorsReader& file) {
  PropertyBag properties;
  for (const auto& [key, text] : file.metadata()) {
    if (!key.starts_with(kPropertyPrefix)) continue;
    const std::string name = key.substr(kPropertyPrefix.size());
    SS_ASSIGN(properties[name], propertyOf(name, text));
  }
  for (const auto& [key, entry] : file.entries()) {
    if (!key.starts_with(kPropertyPrefix)) continue;
    Tensor contents(entry.dtype, entry.dims);
    SS_TRY(file.read(entry, contents.view()));
    properties[key.substr(kPropertyPrefix.size())] = std::move(contents);
  }
  return properties;
}

}  // namespace

Status saveStateFile(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors,
                     const StateCounters& counters, const PropertyBag& properties, const LateContents& late) {
  std::map<std::string, std::string> metadata{{"stepscope.version", std::to_string(kStateVersion)},
                                              {"stepscope.step", std::to_string(counters.step)},
                                              {"stepscope.updates", std::to_string(counters.updates)},
                                              {"stepscope.updates_before", std::to_string(counters.updatesBefore)},
                                              {"stepscope.micro", std::to_string(counters.micro)}};
  if (counters.entry != counters.step) metadata["stepscope.entry"] = std::to_string(counters.entry);  // of ranks
  if (counters.lossScale.factor > 0) {
    metadata["stepscope.loss_scale"] = fmt::format("{}", counters.lossScale.factor);  // enough digits to read it back
    metadata["stepscope.loss_scale_clean"] = std::to_string(counters.lossScale.cleanUpdates);
  }
  if (counters.micro > 0 && counters.roundOf > 0) metadata["stepscope.round_of"] = std::to_string(counters.roundOf);
  if (counters.micro > 0 && counters.sumScale > 0) metadata["stepscope.sum_scale"] = fmt::format("{}", counters.sumScale);
  if (counters.moments)
    for (const auto& [name, updates] : counters.moments->all(counters.updates))
      if (updates != counters.updates && tensors.contains(name))
        metadata[std::string(kUpdatesOf) + name] = std::to_string(updates);
  if (properties.empty()) return writeSafetensors(path, tensors, metadata, late);
  std::map<std::string, TensorView> all = tensors;
  for (const auto& [name, value] : properties) {
    SS_TRY(checkProperty(name, value));
    const std::string key = std::string(kPropertyPrefix) + name;
    if (const auto* tensor = std::get_if<Tensor>(&value))
      all[key] = tensor->view();
    else
      metadata[key] = propertyText(value);
  }
  return writeSafetensors(path, all, metadata, late);
}

Result<StateNames> loadStateFile(const std::filesystem::path& path, bool resume, const Graph& imported, State& state,
                                 const StatePart& part) {
  SS_ASSIGN(const auto file, SafetensorsReader::open(path));
  const auto taken = [&](const std::string& name) {
    if (state.isLowCopy(name) || name.starts_with(kPropertyPrefix)) return false;
    const ValueId id = imported.findValue(name);
    return resume || (id && imported.value(id).role == ValueRole::kInitializer);  // else optimizer state of another run
  };
  std::size_t used = 0;
  for (const auto& [name, tensor] : file.entries()) {
    if (!taken(name)) continue;
    SS_TRY(fitsState(name, tensor, imported, state, part));
    ++used;
  }
  if (used == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("state '{}': no tensor has the name of a parameter of the model", path.string()));
  SS_ASSIGN(PropertyBag properties, propertiesOf(file));
  if (resume) {
    std::set<std::string> names;
    for (const auto& [name, entry] : file.entries()) {
      const ValueId id = imported.findValue(name);
      const bool ofModel = id && imported.value(id).role == ValueRole::kInitializer;
      if (!ofModel && !name.ends_with(".accumulated")) names.insert(name);  // what the optimizer remembers
    }
    SS_ASSIGN(state.counters, countersOf(path, file.metadata(), names));
  }
  StateNames held{path, {}, resume, std::move(properties)};
  if (resume && state.counters.micro > 0) {
    held.micro = state.counters.micro;
    held.roundUnknown = state.counters.roundOf == 0;
    held.scaleUnknown = state.counters.sumScale == 0;
    // A dynamic one stays as it is until the round ends.
    if (held.scaleUnknown) held.scaleTaken = state.counters.sumScale = state.counters.lossScale.factor;
  }
  for (const auto& [name, entry] : file.entries()) {
    if (name.starts_with(kPropertyPrefix)) continue;
    held.names.insert(name);
    if (!taken(name)) continue;
    // Contents are read one tensor at a time.
    Tensor contents(entry.dtype, entry.dims);
    SS_TRY(file.read(entry, contents.view()));
    if (isCut(name, entry, imported, state, part)) contents = rankPart(contents, part.rank, part.ranks);
    const Tensor* present = state.find(name);
    if (present && present->dtype() != contents.dtype()) contents = convertTensor(contents.view(), present->dtype());
    if (present)
      state.write(name, contents.view());
    else
      SS_TRY(state.set(name, contents));
  }
  return held;
}

}  // namespace stepscope
