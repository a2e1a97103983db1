// Loss and metrics of batches.
#include "engine/train/evaluate.h"

#include <fmt/format.h>

#include "app/api/handles.h"

namespace stepscope::api {
namespace {

// `batches` times as many arrays as names.
Result<std::shared_ptr<const FedBatches>> givenBatches(const std::vector<std::string>& names,
                                                       const ss_tensor* const* tensors, std::int64_t batches) {
  auto given = std::make_shared<FedBatches>();
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto* of = tensors ? tensors + static_cast<std::size_t>(b) * names.size() : nullptr;
    SS_ASSIGN(auto arrays, arraysOf("ss_evaluate", names, of));
    given->feed(b, std::move(arrays));
  }
  return given;
}

}  // namespace
}  // namespace stepscope::api

using namespace stepscope;
using namespace stepscope::api;

extern "C" ss_error* ss_evaluate(ss_session* session, const char* const* names, const ss_tensor* const* tensors,
                                 size_t count, int64_t batches, ss_evaluation* evaluation) {
  return guarded("ss_evaluate", session, [&](Session& s) -> Status {
    ss_evaluation result{};
    result.size = evaluation ? evaluation->size : 0;
    SS_TRY(giveOut("ss_evaluate", result, evaluation));
    SS_ASSIGN(const auto inputs, namesOf("ss_evaluate: name", names, count));
    BatchFeed::Open open;
    if (count > 0) {
      if (batches < 1)
        return invalid(fmt::format("ss_evaluate: {} batches of {} arrays; expected at least one", batches, count));
      SS_ASSIGN(const auto given, givenBatches(inputs, tensors, batches));
      open = [given](const Graph& graph) -> Result<std::unique_ptr<DataSource>> { return FedBatches::source(given, graph); };
    } else if (session->fed) {
      return invalid("ss_evaluate: no arrays, and the session takes its batches from ss_feed; expected arrays to evaluate");
    }
    SS_ASSIGN(const Evaluation done, s.lab().evaluate(batches, {}, open));
    result.synthetic = done.synthetic;
    result.batches = done.batches;
    result.loss = done.loss;
    result.labels = done.crossEntropy ? done.labels : -1;
    result.correct = done.crossEntropy ? done.correct : -1;
    result.ns = done.ns;
    return giveOut("ss_evaluate", result, evaluation);
  });
}
