#include "engine/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "engine/onnx/function_calls.h"
#include "engine/onnx/problem.h"
#include "engine/passes/check_operands.h"
#include "engine/passes/pipeline.h"
#include "engine/profile/roofline.h"
#include "engine/train/phase_scope.h"
#include "engine/train/session_parts.h"
#include "engine/train/snapshots.h"
#include "engine/train/utf8.h"

namespace stepscope {
namespace {

ProblemList operandProblems(const LoadedModel& model) {
  std::set<FunctionKey> functions;
  for (const Function& function : model.functions) functions.insert(keyOf(function));
  const auto isCall = [&](const Node& node) { return functions.contains(keyOf(node)); };
  const auto imported = model.opsets.find("");
  const int opset = imported == model.opsets.end() ? kInternalOpset : imported->second;
  std::vector<OperandProblem> found;
  checkOperands(model.graph, opset, isCall, found);
  for (const Function& function : model.functions) checkOperands(function.body, opset, isCall, found);
  ProblemList list;
  for (OperandProblem& problem : found)
    list.add(ErrorCode::kInvalidArgument, std::move(problem.where), std::move(problem.message));
  return list;
}

}  // namespace

Session::Session(Observer observer) : observer_(std::move(observer)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems) {
  std::unique_ptr<Session> session(new Session(std::move(observer)));
  session->path_ = path;
  SS_TRY(session->loadPhases(path, load, problems));
  return session;
}

Status Session::loadPhases(const std::filesystem::path& path, const LoadOptions& load, std::vector<Problem>* problems) {
  {
    PhaseScope phase(*this, "load");
    auto model = loadModel(path, load, problems);
    if (!model) return phase.fail(model.error());
    model_ = std::move(*model);
    phase.child("materialise", model_.weightsBegan, model_.weightsNs, model_.weightsRead);
    phase.count(static_cast<std::int64_t>(model_.graph.order().size()));
  }
  {
    PhaseScope phase(*this, "check");
    for (const LoadWarning& warning : model_.warnings) {
      snapshot::Alert alert;
      alert.set_severity(snapshot::Alert::WARNING);
      alert.set_code("shared_initializer");
      alert.set_node(-1);
      alert.set_message(warning.where + ": " + warning.message);
      raise(alert);
    }
    for (const std::string& problem : model_.graph.verify()) return phase.fail({ErrorCode::kInvalidArgument, problem});
    if (const ProblemList wrong = operandProblems(model_); !wrong.empty()) {
      if (problems) *problems = wrong.problems();
      return phase.fail(wrong.toError());
    }
    phase.count(static_cast<std::int64_t>(model_.graph.nodeCapacity()));
  }
  keepStage("load", model_.graph);
  imported_ = std::move(model_.graph);
  {
    PhaseScope phase(*this, "inline");
    importedInference_ = std::make_unique<Inference>(imported_, InferOptions{.declared = &model_.valueInfo});
    PassContext context = passContext(*importedInference_);
    if (Status status = runPhasePasses(passesOf("inline"), imported_, context); !status) return phase.fail(status.error());
    phase.count(static_cast<std::int64_t>(imported_.order().size()));
  }
  keepStage("inline", imported_);
  {
    PhaseScope phase(*this, "infer");
    PassContext context = passContext(*importedInference_);
    if (Status status = runPhasePasses(passesOf("infer"), imported_, context); !status) return phase.fail(status.error());
    phase.count(static_cast<std::int64_t>(imported_.order().size()));
  }
  imported_.markImported();
  keepStage("infer", imported_);
  loadedStages_ = stages_.size();
  return {};
}

std::vector<snapshot::PhaseSpan> Session::phasesOf(std::size_t build) const {
  const std::size_t first = builds_[build], end = build + 1 < builds_.size() ? builds_[build + 1] : spans_.size();
  std::vector<snapshot::PhaseSpan> spans(spans_.begin() + static_cast<std::ptrdiff_t>(first),
                                         spans_.begin() + static_cast<std::ptrdiff_t>(end));
  for (snapshot::PhaseSpan& span : spans)
    if (span.parent() >= 0) span.set_parent(span.parent() - static_cast<int>(first));
  return spans;
}

void Session::keepStage(std::string phase, const Graph& graph) {
  std::erase_if(stages_, [&](const Stage& stage) { return stage.phase == phase; });
  stages_.push_back({std::move(phase), std::make_shared<const Graph>(graph)});
}

void Session::raise(snapshot::Alert alert) {
  // No alert of the engine is about one value or one instruction, and 0 would be the first.
  alert.set_value(-1);
  alert.set_instruction(-1);
  if (alert.step() == 0) alert.set_step(state_.step);
  // An alert is told once, not once per step.
  if (!alerted_.insert(alert.code() + alert.message()).second) return;
  alert.set_message(toUtf8(alert.message()));
  alerts_.push_back(alert);
  if (observer_.alert) observer_.alert(alert);
}

std::vector<snapshot::Option> Session::optionList() const {
  std::vector<snapshot::Option> list;
  for (const OptionInfo& info : optionTable()) {
    snapshot::Option option;
    option.set_name(std::string(info.name));
    option.set_default_value(std::string(info.defaultValue));
    option.set_doc(std::string(info.doc));
    for (const std::string_view choice : info.choices) option.add_choices(std::string(choice));
    const auto origin = options().origins.find(std::string(info.name));
    option.set_value(origin == options().origins.end() ? std::string(info.defaultValue) : origin->second.value);
    option.set_set_by(origin == options().origins.end() ? "default" : origin->second.setBy);
    if (const auto effect = optionEffects_.find(std::string(info.name)); effect != optionEffects_.end())
      option.set_effect(effect->second);
    list.push_back(std::move(option));
  }
  return list;
}

Result<snapshot::Graph> Session::graphSnapshot(const std::string& phase) const {
  if (stages_.empty()) return fail(ErrorCode::kNotFound, "graph: nothing was built yet");
  for (const Stage& stage : stages_)
    if (stage.phase == phase || (phase.empty() && &stage == &stages_.back()))
      return toSnapshot(*stage.graph, stage.phase, parameters_, loss_);
  std::string names;
  for (const Stage& stage : stages_) names += (names.empty() ? "" : ", ") + stage.phase;
  return fail(ErrorCode::kNotFound, fmt::format("graph: no phase '{}'; kept are {}", phase, names));
}

Result<snapshot::Plan> Session::planSnapshot() const {
  if (!variant_) return fail(ErrorCode::kNotFound, "plan: nothing was built yet");
  snapshot::Plan plan = toSnapshot(*variant_->executor);
  if (variant_->peak) addRoofline(variant_->executor->plan(), *variant_->peak, plan);
  return plan;
}

std::vector<snapshot::Determinism> Session::determinism() const {
  std::vector<snapshot::Determinism> verdicts;
  if (!variant_) return verdicts;
  const Executor& executor = *variant_->executor;
  for (std::size_t i = 0; i < executor.plan().instructions.size(); ++i) {
    const NodeId id = executor.plan().instructions[i].node;
    const Node& node = variant_->graph.node(id);
    const OpDef* op = findOp(node.domain, node.op);
    const std::string& implementation = executor.implementation(static_cast<int>(i));
    snapshot::Determinism verdict;
    verdict.set_node(id.index);
    if (op && op->determinism == Determinism::kRandomKeyed) {
      verdict.set_verdict("deterministic, keyed random");
      verdict.set_reason("numbers depend on seed, micro step, imported node and element only");
    } else if (implementation.starts_with("onednn")) {
      verdict.set_verdict("depends on thread count");
      verdict.set_reason(implementation +
                         ": the library may split sums by the number of threads; equal bits for an equal number");
    } else {
      verdict.set_verdict("deterministic");
      verdict.set_reason("every element is computed by one thread in a fixed order");
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::int64_t residentPeakBytes() {
  // Not getrusage(): a child of a large program (the window, Python) begins with that program's peak.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

}  // namespace stepscope
