// `stepscope evaluate`: loss and metrics over the data, with Dropout off and statistics frozen.
#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"
#include "engine/train/evaluate.h"

namespace stepscope::cli {
namespace {

struct EvaluateArguments {
  std::string model;
  std::int64_t batches = 0;
  bool json = false;
  SharedOptions shared;
};

Session* runningEvaluate = nullptr;

void onEvaluateInterrupt(int) {
  if (runningEvaluate) runningEvaluate->cancel();
}

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

void tellBatch(const EvaluatedBatch& batch, bool json) {
  if (json) {
    sayJson({{"event", "evaluated_batch"},
             {"batch", batch.index},
             {"label", batch.label},
             {"loss", batch.loss},
             {"labels", batch.labels},
             {"correct", batch.correct}});
    return;
  }
  say("batch {}  loss {:.6g}", batch.index, batch.loss);
  if (batch.labels > 0) say("  accuracy {:.4f} of {} labels", share(batch.correct, batch.labels), batch.labels);
  say("\n");
}

void tellAll(const Evaluation& all, bool json) {
  if (json) {
    nlohmann::json event = {{"event", "evaluation"},     {"batches", all.batches}, {"loss", all.loss},
                            {"weighted", all.weighted},  {"ns", all.ns},           {"plans", all.plans},
                            {"synthetic", all.synthetic}};
    if (all.crossEntropy)
      event.update({{"labels", all.labels}, {"correct", all.correct}, {"accuracy", share(all.correct, all.labels)}});
    if (all.weighted) event["perplexity"] = std::exp(all.loss);
    sayJson(event);
    return;
  }
  say("\n{} batches of {} data: loss {:.6g}, {}\n", all.batches, all.synthetic ? "synthetic" : "the", all.loss,
      all.weighted ? "the mean over all labels" : "the mean over batches");
  if (all.crossEntropy) say("accuracy {:.4f} ({} of {} labels)\n", share(all.correct, all.labels), all.correct, all.labels);
  if (all.weighted) say("perplexity {:.6g}\n", std::exp(all.loss));
  say("Dropout off, running statistics frozen; {} of computing\n", units::time(all.ns));
}

Status evaluateModel(const EvaluateArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  options.ringBytes = 0;
  options.record = "off";
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights));
  SS_TRY(prepare(*session, a.shared));
  runningEvaluate = session.get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, onEvaluateInterrupt);
  const auto evaluation = session->lab().evaluate(a.batches, [&](const EvaluatedBatch& batch) { tellBatch(batch, a.json); });
  runningEvaluate = nullptr;
  if (!evaluation) return tl::make_unexpected(evaluation.error());
  tellAll(*evaluation, a.json);
  if (evaluation->weighted && evaluation->labels == 0)
    return invalid(
        fmt::format("loss: no label of {} batches counts, so it is undefined; expected labels that the loss does "
                    "not ignore",
                    evaluation->batches));
  if (!std::isfinite(evaluation->loss))
    return invalid(fmt::format("loss: {} over {} batches; expected a finite number", units::signless(evaluation->loss),
                               evaluation->batches));
  if (a.json) output.finished(evaluation->batches, evaluation->ns);
  return {};
}

}  // namespace

Command evaluateCommand() {
  auto a = std::make_shared<EvaluateArguments>();
  Command command{"evaluate",
                  "loss over the data with Dropout off and running statistics frozen; of a cross entropy accuracy and "
                  "perplexity too",
                  {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
                   {"--batches", &a->batches, "entries of the data, from the first on [all; 8 of synthetic data]", "N"},
                   {"--json", &a->json, "one JSON object per line: every batch, the sums"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (a->batches < 0) {
      report({ErrorCode::kInvalidArgument,
              fmt::format("option 'batches': found {}; expected 1 or more, or 0 for all", a->batches)});
      return kUsage;
    }
    if (Status status = evaluateModel(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
