// Sessions, options, data, and building.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/api/handles.h"
#include "engine/build/environment.h"
#include "engine/plugin/plugin_registry.h"

namespace stepscope::api {
namespace {

void describe(const Value& value, ss_value_info& info, Given& given) {
  info.name = given.text(value.name);
  info.dtype = static_cast<std::int32_t>(value.type.dtype);
  info.text = given.text(value.type.text());
  info.rank = SIZE_MAX;
  info.dims = nullptr;
  info.trained = 0;
  info.elements = -1;
  if (!value.type.shape) return;
  Dims dims;
  for (const Dim& dim : *value.type.shape) dims.push_back(dim.known() ? dim.value() : -1);
  info.rank = dims.size();
  if (std::ranges::none_of(dims, [](std::int64_t d) { return d < 0; })) info.elements = elementCount(dims);
  info.dims = given.numbers(std::move(dims));
}

// Everything that is known of the options: built-in ones, and those of plugins once they are loaded.
Status apply(TrainOptions& options, const std::vector<OptionInfo>& table, const char* what, const char* name,
             const char* value) {
  SS_ASSIGN(const std::string option, nameOf(what, name));
  SS_ASSIGN(const std::string text, nameOf(what, value));
  return applySetting(options, option, text, "api", table);
}

// Options that add others have to be known before those are set.
bool loadsPlugins(const std::string& name) { return settingsOf({}).contains(name); }

Result<std::unique_ptr<Session>> open(const char* model, const char* const* names, const char* const* values,
                                      std::size_t count) {
  SS_ASSIGN(const std::string path, nameOf("ss_open: model", model));
  SS_ASSIGN(const std::vector<std::string> set, namesOf("ss_open: option", names, count));
  SS_ASSIGN(const std::vector<std::string> to, namesOf("ss_open: value", values, count));
  std::map<std::string, std::string> ofPlugins;
  for (std::size_t i = 0; i < count; ++i)
    if (loadsPlugins(set[i])) ofPlugins[set[i]] = to[i];
  SS_ASSIGN(const PluginWish plugins, pluginWish(ofPlugins, "api"));
  SS_ASSIGN(auto registry, registryWith(plugins));
  TrainOptions options;
  SS_TRY(applyEnvironment(options, plugins, registry->options()));
  for (std::size_t i = 0; i < count; ++i)
    if (!loadsPlugins(set[i])) SS_TRY(applySetting(options, set[i], to[i], "api", registry->options()));
  LoadOptions load;
  load.loopIterations = options.loopIterations;
  if (options.missingWeights == "random") load.missingWeights = LoadOptions::MissingWeights::kRandom;
  SS_ASSIGN(auto session, Session::open(path, load, {}, nullptr, std::move(registry)));
  SS_TRY(session->setOptions(std::move(options)));
  return session;
}

Status feed(ss_session& handle, const char* const* names, const ss_tensor* const* tensors, std::size_t count) {
  SS_ASSIGN(const std::vector<std::string> inputs, namesOf("ss_feed: name", names, count));
  SS_ASSIGN(auto arrays, arraysOf("ss_feed", inputs, tensors));
  Session& session = *handle.session;
  const bool first = !handle.fed;
  if (first) handle.fed = std::make_shared<FedBatches>();
  const std::int64_t step = session.nextStep();
  const std::vector<std::int64_t> ring = session.ring();
  handle.fed->forgetBefore(ring.empty() ? step : std::min(step, ring.front()));
  handle.fed->feed(step, std::move(arrays));
  if (!first) return {};
  return session.feedWith([fed = handle.fed](const Graph& graph) -> Result<std::unique_ptr<DataSource>> {
    return FedBatches::source(fed, graph);
  });
}

void list(const Session& session, InfoList<ss_instruction_info>& list) {
  list.clear();
  const Stepper& stepper = session.stepper();
  const auto& instructions = stepper.plan().instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    const Node& node = stepper.graph().node(instruction.node);
    ss_instruction_info& info = list.add();
    info.index = static_cast<std::int32_t>(i);
    info.name = list.given.text(node.name);
    info.op = list.given.text(node.domain.empty() ? node.op : node.domain + "." + node.op);
    info.phase = list.given.text(phaseName(instruction.phase));
    info.flops = instruction.flops;
    info.bytes_read = instruction.bytesRead;
    info.bytes_written = instruction.bytesWritten;
  }
}

void list(const Session& session, InfoList<ss_option_info>& list) {
  list.clear();
  for (const snapshot::Option& option : session.optionList()) {
    ss_option_info& info = list.add();
    std::vector<const char*> choices;
    for (const std::string& choice : option.choices()) choices.push_back(list.given.text(choice));
    info.choice_count = static_cast<std::uint32_t>(choices.size());
    info.choices = list.given.list(choices);
    info.name = list.given.text(option.name());
    info.value = list.given.text(option.value());
    info.default_value = list.given.text(option.default_value());
    info.set_by = list.given.text(option.set_by());
    info.doc = list.given.text(option.doc());
    info.kind = list.given.text(option.kind());
  }
}

template <typename Info>
Status giveList(const char* what, const InfoList<Info>& infos, const Info* const** list, std::size_t* count) {
  if (!list || !count) return invalid(fmt::format("{}: a place for the list is NULL; expected two", what));
  infos.giveOut(list, count);
  return {};
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" {

ss_error* ss_open(const char* model, const char* const* names, const char* const* values, size_t count,
                  ss_session** session) {
  return guarded("ss_open", [&]() -> Status {
    if (!session) return invalid("ss_open: the place for the session is NULL; expected one");
    *session = nullptr;
    SS_ASSIGN(auto opened, open(model, names, values, count));
    auto handle = std::make_unique<ss_session>();
    handle->session = std::move(opened);
    const Graph& graph = handle->session->imported();
    for (const ValueId id : graph.inputs()) describe(graph.value(id), handle->inputs.add(), handle->inputs.given);
    *session = handle.release();
    return {};
  });
}

void ss_close(ss_session* session) {
  if (!session) return;
  const auto attached = session->attached;
  const AttachedLoop::Inside inside(loopOf(attached));
  if (attached) attached->loop().forget(*session->session);
  delete session;
}

ss_error* ss_inputs(ss_session* session, const ss_value_info* const** list, size_t* count) {
  return guarded("ss_inputs", session, [&](Session&) { return giveList("ss_inputs", session->inputs, list, count); });
}

ss_error* ss_set(ss_session* session, const char* name, const char* value) {
  return guarded("ss_set", session, [&](Session& s) -> Status {
    TrainOptions options = s.options();
    SS_TRY(apply(options, s.registry().options(), "ss_set", name, value));
    return s.setOptions(std::move(options));
  });
}

ss_error* ss_apply(ss_session* session) {
  return guarded("ss_apply", session, [](Session& s) { return s.applyOptions(); });
}

ss_error* ss_options(ss_session* session, const ss_option_info* const** list, size_t* count) {
  return guarded("ss_options", session, [&](Session& s) {
    api::list(s, session->options);
    return giveList("ss_options", session->options, list, count);
  });
}

ss_error* ss_feed(ss_session* session, const char* const* names, const ss_tensor* const* tensors, size_t count) {
  return guarded("ss_feed", session, [&](Session&) { return feed(*session, names, tensors, count); });
}

ss_error* ss_keep_gradients(ss_session* session, int32_t on) {
  return guarded("ss_keep_gradients", session, [&](Session& s) -> Status {
    s.keepGradients(on != 0);
    return {};
  });
}

ss_error* ss_keep_values(ss_session* session, const char* const* names, size_t count) {
  return guarded("ss_keep_values", session, [&](Session& s) -> Status {
    SS_ASSIGN(auto kept, namesOf("ss_keep_values", names, count));
    s.keep(std::move(kept));
    return {};
  });
}

ss_error* ss_build(ss_session* session) {
  return guarded("ss_build", session, [](Session& s) { return s.build(); });
}

ss_error* ss_build_forward(ss_session* session, const char* const* fetch, size_t count) {
  return guarded("ss_build_forward", session, [&](Session& s) -> Status {
    SS_ASSIGN(const auto names, namesOf("ss_build_forward", fetch, count));
    return s.buildForward(names);
  });
}

ss_error* ss_instructions(ss_session* session, const ss_instruction_info* const** list, size_t* count) {
  return guarded("ss_instructions", session, [&](Session& s) -> Status {
    if (!s.built()) return fail(ErrorCode::kNotFound, "ss_instructions: nothing was built; expected ss_build before");
    api::list(s, session->instructions);
    return giveList("ss_instructions", session->instructions, list, count);
  });
}

ss_error* ss_parameters(ss_session* session, const ss_value_info* const** list, size_t* count) {
  return guarded("ss_parameters", session, [&](Session& s) -> Status {
    auto& infos = session->parameters;
    infos.clear();
    for (const ParameterChoice& parameter : s.plans().parameters()) {
      ss_value_info& info = infos.add();
      describe(s.plans().valueOf(parameter), info, infos.given);
      info.trained = parameter.trained ? 1 : 0;
    }
    return giveList("ss_parameters", infos, list, count);
  });
}
}
