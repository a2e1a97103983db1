// Phases specialise, recompute, plan: a batch's shapes bind the extents of the step.
#include <fmt/format.h>

#include <algorithm>

#include "engine/build/builder.h"
#include "engine/build/known_recompute.h"
#include "engine/build/parameter_parts.h"
#include "engine/build/phase_passes.h"
#include "engine/ir/key_index.h"
#include "engine/passes/loop_memory.h"
#include "engine/plan/fallbacks.h"
#include "engine/plan/fits.h"
#include "engine/plan/stream_partition.h"
#include "engine/recompute/choose.h"
#include "engine/snapshot/alert.h"

namespace stepscope {
namespace {

// Option loop.max_memory, once a batch has bound the extents and before anything is planned.
Status checkLoops(const Graph& graph, const Inference& facts, std::int64_t most) {
  if (most == 0) return {};
  for (const LoopMemory& loop : loopMemory(graph, facts))
    if (loop.bytes > most)
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("{}: {} iterations keep {}{} bytes; expected at most {}, the option loop.max_memory; hint: a "
                              "larger limit, a smaller batch, or fewer iterations",
                              loop.loop, loop.iterations, loop.partly ? "at least " : "", loop.bytes, most));
  return {};
}

// Option streams.partition.
Status choosePartition(const TrainOptions& options, PlanOptions& plan, std::map<std::string, std::string>& effects) {
  if (!options.streamPartition) return {};
  if (plan.device->onHost()) {
    effects["streams.partition"] = fmt::format("nothing: device '{}' has one stream", plan.device->facts().name);
    return {};
  }
  if (options.streamPartition->streams > plan.streams)
    return failOption(ErrorCode::kInvalidArgument, "streams.partition",
                      fmt::format("made for {} streams; expected at most {}, the option cuda.streams",
                                  options.streamPartition->streams, plan.streams));
  plan.partition = options.streamPartition;
  return {};
}

}  // namespace

Result<std::shared_ptr<const Variant>> Builder::specialise(std::shared_ptr<const SymbolicStep> step,
                                                           const Signature& signature, std::string reason,
                                                           std::vector<Stage>& stages) const {
  auto variant = std::make_shared<Variant>();
  variant->signature = signature;
  variant->graph = step->graph;
  variant->effects = step->effects;
  variant->step = std::move(step);
  const BuildRequest& request = variant->step->request;
  Graph& graph = variant->graph;
  {
    BuildLog::Scope phase(log_, "specialise");
    graph.setPass("specialise");
    for (const ValueId id : graph.inputs()) {
      Value& value = graph.mutableValue(id);
      if (const auto it = signature.arrays.find(value.name); it != signature.arrays.end())
        value.type.shape = shapeOf(it->second.second);
    }
    for (const KeptRows& kept : variant->step->keptRows) {
      const auto rows = signature.rows.find(kept.input);
      const auto labels = signature.arrays.find(kept.labels);
      if (rows == signature.rows.end() && labels == signature.arrays.end()) continue;
      const std::int64_t extent = rows != signature.rows.end() ? rows->second : elementCount(labels->second.second);
      graph.mutableValue(graph.findValue(kept.input)).type.shape = Shape{extent};
    }
    if (variant->step->outer) SS_TRY(shapeSeeds(graph, *variant->step->outer, model_->registry->operators()));
    constexpr std::int64_t kFoldElements = 1 << 20;
    variant->inference =
        std::make_unique<Inference>(graph, model_->registry->operators(), InferOptions{.foldElements = kFoldElements});
    if (Status status = variant->inference->run(cancel_); !status) return phase.fail(request.explain(status.error()));
    if (variant->step->outer) {
      auto factors = sampleFactors(graph, *variant->step->outer);
      if (!factors) return phase.fail(factors.error());
      variant->sampleFactors = std::move(*factors);
    }
    if (Status fits = checkLoops(graph, *variant->inference, request.options.loopMemory); !fits)
      return phase.fail(fits.error());
    if (request.aloneOf == 0)
      if (Status shares = checkShares(graph, request.ranks); !shares) return phase.fail(shares.error());
    SS_TRY(optimise("fold", *variant->step, graph, *variant->inference, variant->effects, variant->stages));
    phase.count(graph.order().size());
  }
  keepStage(variant->stages, "specialise", graph, log_);
  stages.insert(stages.end(), variant->stages.begin(), variant->stages.end());
  const std::size_t specialised = variant->stages.size();
  PlanOptions& planOptions = variant->planOptions;
  planOptions.inPlace = request.options.inPlace;
  planOptions.reuse = request.options.reuse;
  planOptions.trained = variant->step->trained;
  planOptions.threads = request.threads;
  planOptions.anyThreads = request.options.deterministic == "threads";
  planOptions.referenceKernels = request.options.referenceKernels;
  planOptions.tf32 = request.options.cudaTf32;
  SS_ASSIGN(planOptions.device, findDevice(request.options.device));
  planOptions.unordered = request.options.deterministic == "off" && !planOptions.device->onHost();
  planOptions.deviceRanks = request.ranks > 1 && request.options.distributed == "nccl";
  planOptions.overlap = request.ranks > 1 && request.options.rankOverlap;
  planOptions.prefetch = request.ranks > 1 && request.options.rankPrefetch;
  if (!planOptions.device->onHost()) planOptions.streams = static_cast<int>(request.options.cudaStreams);
  SS_TRY(choosePartition(request.options, planOptions, variant->effects));
  for (const std::string& name : request.keep) planOptions.pinned.push_back(graph.findValue(name));
  if (!request.pinned.empty()) {
    const KeyIndex keys(graph);
    for (const ValueKey& key : request.pinned) planOptions.pinned.push_back(keys.find(key));
  }
  std::erase_if(planOptions.pinned, [](ValueId id) { return !id.valid(); });
  if (!request.forwardOnly) SS_TRY(recompute(*variant));
  if (variant->stages.size() > specialised) stages.push_back(variant->stages.back());
  SS_TRY(plan(*variant, std::move(reason)));
  return variant;
}

Status Builder::recompute(Variant& variant) const {
  const TrainOptions& options = variant.step->request.options;
  SS_TRY(cancel_.check("recompute"));
  BuildLog::Scope phase(log_, "recompute");
  Graph& graph = variant.graph;
  graph.setPass("recompute");
  const std::size_t before = graph.order().size();
  RecomputeOptions asked{options.recomputeBudget, options.recomputePlan, variant.planOptions, cancel_};
  const BuildCache cache(options.recomputeBudget > 0 ? options.cacheDir : std::string());
  const CacheQuestion question = cache.on() ? recomputeQuestion(variant) : CacheQuestion{};
  CacheFound found = cache.find(question);
  if (found.answer) asked.known = choiceFrom(*found.answer);
  auto outcome = stepscope::recompute(graph, *variant.inference, asked);
  if (!outcome) return phase.fail(outcome.error());
  if (cache.on()) {
    BuildLog::Scope child(log_, "cache recompute");
    if (found.answer && !outcome->knownTaken)
      found.reason = "miss: there is an entry, and it is damaged: it is no choice of this step, or of another peak";
    child.count(outcome->knownTaken ? 1 : 0);
    child.pass().set_name("cache recompute");
    child.pass().add_notes(found.reason);
    if (!outcome->knownTaken)
      if (Status kept = cache.keep(question, choiceText(outcome->choice)); !kept) log_.warn("cache", kept.error().message);
  }
  writePassReport(phase.pass(), "recompute", outcome->result, before, graph.order().size());
  phase.count(outcome->result.matches);
  if (variant.step->request.ranks > 1 && options.rankShard == "parameters") readGatheredAgain(graph);
  if (outcome->peakBefore > 0)
    variant.effects[options.recomputeBudget > 0 ? "recompute.budget" : "recompute.plan"] =
        fmt::format("{} nodes run again; live activations {} → {} bytes", outcome->result.matches, outcome->peakBefore,
                    outcome->peakAfter);
  for (const std::string& absent : outcome->absent)
    log_.warn("recompute_plan", fmt::format("option 'recompute.plan': '{}' is no pattern of this step; expected one that "
                                            "`stepscope build --recompute` lists, or ONNX Runtime's name of one",
                                            absent));
  if (outcome->overBudget)
    log_.warn("recompute_budget",
              fmt::format("option 'recompute.budget': {} bytes of live activations are left; expected at most {}; hint: a "
                          "smaller batch, or a larger budget",
                          outcome->peakAfter, options.recomputeBudget));
  if (outcome->result.matches > 0) keepStage(variant.stages, "recompute", graph, log_);
  return {};
}

Status Builder::plan(Variant& variant, std::string reason) const {
  const TrainOptions& options = variant.step->request.options;
  SS_TRY(cancel_.check("plan"));
  BuildLog::Scope phase(log_, "plan");
  auto made = makePlan(variant.graph, *variant.inference, variant.planOptions, cancel_);
  if (!made) return phase.fail(made.error());
  ExecutionPlan& plan = variant.plan = std::move(*made);
  plan.signature = variant.signature.text();
  plan.reason = std::move(reason);
  measureLiveBytes(plan);
  plan.arenaRoomBytes = arenaRoom(plan, *variant.planOptions.device);
  if (Status fits = checkFits(plan, options.memoryLimit); !fits) {
    // State is allocated by the build. The arena is only touched by a step, so what does not fit can still be looked at.
    if (options.memoryLimit > 0 || plan.persistentBytes > machineMemoryBytes()) return phase.fail(fits.error());
    variant.doesNotFit = fits.error();
    log_.warn("does_not_fit", fits.error().message);
  }
  phase.count(plan.instructions.size());
  if (std::string left = fallbacksOf(plan, variant.graph).text(); !left.empty())
    log_.raise(makeAlert(snapshot::Alert::INFO, "cpu_fallbacks", std::move(left)));
  std::int64_t inPlace = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.sharing == Sharing::kInPlace) inPlace += buffer.bytes;
  if (const auto& partition = variant.planOptions.partition) {
    const AssignedStreams assigned = assignStreams(plan, variant.graph, *partition);
    const auto named = std::ranges::count_if(assigned.streams, [](int stream) { return stream >= 0; });
    std::string& effect = variant.effects["streams.partition"];
    effect = fmt::format("{} nodes run on the stream that it names", named);
    if (!assigned.unknown.empty())
      effect += fmt::format("; {} keys are of no node of this plan, such as '{}'", assigned.unknown.size(),
                            assigned.unknown.front());
  }
  variant.effects["memory.inplace"] = fmt::format("{} bytes of values take over the memory of an input", inPlace);
  return {};
}

}  // namespace stepscope
