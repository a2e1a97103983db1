#include "engine/passes/run_passes.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "engine/ir/pass_scope.h"

namespace stepscope {
namespace {

constexpr std::size_t kShownProblems = 5;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status verified(const Graph& graph, const Pass& pass) {
  const std::vector<std::string> problems = graph.verify();
  if (problems.empty()) return {};
  std::string text = fmt::format("pass '{}' left a broken graph, {} problems", pass.name, problems.size());
  for (std::size_t i = 0; i < std::min(problems.size(), kShownProblems); ++i) text += "\n  " + problems[i];
  return fail(ErrorCode::kInternal, std::move(text));
}

class Runner {
 public:
  Runner(Graph& graph, PassContext& context, const RunOptions& options)
      : graph_(graph), context_(context), options_(options) {
    compareCost();
  }

  Status run(const Pass& pass, int round) {
    if (pass.enabled != PassSwitch::kMandatory &&
        !(options_.enabled ? options_.enabled(pass) : pass.enabled == PassSwitch::kOn))
      return {};
    SS_TRY(context_.cancel.check(pass.name));
    if (options_.begin) options_.begin(pass);
    context_.result = {};
    context_.user = pass.user;
    const std::size_t before = graph_.order().size();
    const std::int64_t began = now();
    const Status status = apply(pass);
    const std::int64_t ended = now();
    if (status) compareCost();
    if (options_.end)
      options_.end({pass, round, before, graph_.order().size(), began, ended - began, context_.result,
                    status ? nullptr : &status.error()});
    return status;
  }

 private:
  Status apply(const Pass& pass) {
    const PassScope scope(graph_, std::string(pass.name));
    const std::uint64_t version = graph_.version();
    SS_TRY(pass.run(graph_, context_));
    if (pass.enabled == PassSwitch::kMandatory && graph_.version() != version) SS_TRY(graph_.sortTopologically());
    return options_.verify ? verified(graph_, pass) : Status();
  }

  // What the graph costs less than after the pass before, where the extents of both are known alike.
  void compareCost() {
    if (!context_.extents || costed_ == graph_.version()) return;
    const GraphCost now = graphCost(graph_, context_.inference.ops(), *context_.extents, context_.target.roof);
    if (cost_ && now.unknown == cost_->unknown && (now.bytes != cost_->bytes || now.flops != cost_->flops))
      context_.result.saved = GraphCost{cost_->bytes - now.bytes, cost_->flops - now.flops, cost_->ns - now.ns, 0};
    cost_ = now;
    costed_ = graph_.version();
  }

  Graph& graph_;
  PassContext& context_;
  const RunOptions& options_;
  std::optional<GraphCost> cost_;  // of the graph at version costed_
  std::optional<std::uint64_t> costed_;
};

}  // namespace

RunOptions::RunOptions() : verify(verifiesPasses()) {}

bool verifiesPasses() {
  if (const char* wish = std::getenv("STEPSCOPE_VERIFY_PASSES")) return std::string_view(wish) != "0";
#ifdef SS_VERIFY_PASSES
  return true;
#else
  return false;
#endif
}

Status runPasses(const PassList& list, Graph& graph, PassContext& context, const RunOptions& options) {
  Runner runner(graph, context, options);
  for (int round = 0; list.repeated > 0; ++round) {
    std::size_t matches = 0;
    std::string blocked;
    for (std::size_t i = 0; i < list.repeated; ++i) {
      SS_TRY(runner.run(list.passes[i], round));
      matches += context.result.matches;
      if (blocked.empty()) blocked = context.result.blocked;
    }
    if (matches > 0) continue;
    if (!blocked.empty()) return unsupported(std::move(blocked));
    break;
  }
  for (std::size_t i = list.repeated; i < list.passes.size(); ++i) SS_TRY(runner.run(list.passes[i], 0));
  return {};
}

}  // namespace stepscope
