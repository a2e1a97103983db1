#include "engine/build/import.h"

#include <set>

#include "engine/build/phase_passes.h"
#include "engine/onnx/function_calls.h"
#include "engine/onnx/problem.h"
#include "engine/passes/check_attributes.h"
#include "engine/passes/check_operands.h"

namespace stepscope {
namespace {

// What nodes of the file lack: operands, attributes. What they have beyond them is a warning.
ProblemList nodeProblems(const LoadedModel& model, const OpRegistry& ops, BuildLog& log) {
  std::set<FunctionKey> functions;
  for (const Function& function : model.functions) functions.insert(keyOf(function));
  const auto isCall = [&](const Node& node) { return functions.contains(keyOf(node)); };
  const auto imported = model.opsets.find("");
  const int opset = imported == model.opsets.end() ? kInternalOpset : imported->second;
  std::vector<OperandProblem> found;
  checkOperands(model.graph, opset, isCall, found, ops);
  for (const Function& function : model.functions) checkOperands(function.body, opset, isCall, found, ops);
  ProblemList list;
  for (OperandProblem& problem : found)
    list.add(ErrorCode::kInvalidArgument, std::move(problem.where), std::move(problem.message));
  std::vector<AttributeFinding> attributes;
  checkAttributes(model.graph, opset, isCall, attributes);
  for (const Function& function : model.functions) checkAttributes(function.body, opset, isCall, attributes);
  for (AttributeFinding& finding : attributes)
    if (finding.missing)
      list.add(ErrorCode::kInvalidArgument, std::move(finding.where), std::move(finding.message));
    else
      log.warn("unknown_attribute", finding.where + ": " + finding.message);
  return list;
}

Status loadPhase(ImportedModel& model, const LoadOptions& load, BuildLog& log, std::vector<Problem>* problems) {
  BuildLog::Scope phase(log, "load");
  auto file = loadModel(model.path, load, problems);
  if (!file) return phase.fail(file.error());
  model.file = std::move(*file);
  phase.child("materialise", model.file.weightsBegan, model.file.weightsNs, model.file.weightsRead);
  phase.count(model.file.graph.order().size());
  return {};
}

Status checkPhase(ImportedModel& model, BuildLog& log, std::vector<Problem>* problems) {
  BuildLog::Scope phase(log, "check");
  for (const LoadWarning& warning : model.file.warnings)
    log.warn("shared_initializer", warning.where + ": " + warning.message);
  for (const std::string& problem : model.file.graph.verify()) return phase.fail({ErrorCode::kInvalidArgument, problem});
  if (const ProblemList wrong = nodeProblems(model.file, model.registry->operators().ops, log); !wrong.empty()) {
    if (problems) *problems = wrong.problems();
    return phase.fail(wrong.toError());
  }
  phase.count(model.file.graph.nodeCapacity());
  return {};
}

// The passes of phase inline or infer.
Status importPasses(std::string_view name, ImportedModel& model, BuildLog& log) {
  BuildLog::Scope phase(log, std::string(name));
  const TrainOptions options;  // a file is opened before anything is set
  std::map<std::string, std::string> effects;
  PassContext context = passContext(model.file, options, threadsOf(options), *model.inference, log);
  context.cancel = model.load.cancel;
  context.options["loop.max_iterations"] = std::to_string(model.load.loopIterations);
  if (Status status =
          runPhasePasses(model.registry->passesOf(name), options, model.graph, context, log, effects, model.stages);
      !status)
    return phase.fail(status.error());
  phase.count(model.graph.order().size());
  return {};
}

}  // namespace

Result<std::shared_ptr<const ImportedModel>> importModel(const std::filesystem::path& path, const LoadOptions& load,
                                                         BuildLog& log, std::vector<Problem>* problems,
                                                         std::shared_ptr<const Registry> registry) {
  auto model = std::make_shared<ImportedModel>();
  model->registry = std::move(registry);
  model->path = path;
  model->load = load;
  SS_TRY(loadPhase(*model, load, log, problems));
  SS_TRY(checkPhase(*model, log, problems));
  keepStage(model->stages, "load", model->file.graph, log);
  model->graph = std::move(model->file.graph);
  model->inference = std::make_unique<Inference>(model->graph, model->registry->operators(),
                                                 InferOptions{.declared = &model->file.valueInfo});
  SS_TRY(importPasses("inline", *model, log));
  keepStage(model->stages, "inline", model->graph, log);
  SS_TRY(importPasses("infer", *model, log));
  model->graph.markImported();
  keepStage(model->stages, "infer", model->graph, log);
  model->load.cancel = {};  // it was of this call
  return model;
}

}  // namespace stepscope
