// What is asked of values, of the state and of the laboratory.
#include <fmt/format.h>

#include "engine/snapshot/utf8.h"
#include "engine/step/values.h"
#include "engine/wire/lab_answers.h"
#include "engine/wire/session_service.h"

namespace stepscope {

Status SessionService::recompute(const snapshot::Request& request) {
  SS_TRY(needSession());
  const snapshot::GetRecompute& asked = request.recompute();
  std::optional<RecomputeQuestion> question;
  if (asked.what_if()) {
    if (asked.budget() < 0)
      return invalid(fmt::format("recompute: found a budget of {} bytes; expected 0 (none) or more", asked.budget()));
    question.emplace();
    SS_ASSIGN(question->plan, parseRecomputePlan(asked.plan()));
    question->budget = asked.budget();
  }
  SS_ASSIGN(auto report, session_->lab().recompute(question));
  snapshot::Response response;
  *response.mutable_recompute() = std::move(report);
  return answer(request.id(), std::move(response), true);
}

Status SessionService::precision(const snapshot::Request& request) {
  SS_TRY(needSession());
  SS_ASSIGN(auto report, session_->lab().precision(request.precision()));
  snapshot::Response response;
  *response.mutable_precision() = std::move(report);
  return answer(request.id(), std::move(response), true);
}

// Each trial is told as soon as it is measured: who cancels has seen it.
Status SessionService::trials(const snapshot::Request& request) {
  SS_TRY(needSession());
  const auto tried = [&](const snapshot::Trial& trial) {
    snapshot::Response one;
    *one.mutable_trials()->add_trials() = trial;
    connection_.send(request.id(), std::move(one), false);
  };
  snapshot::Response response;
  SS_ASSIGN(*response.mutable_trials(), session_->lab().trials(request.trials(), tried));
  return answer(request.id(), std::move(response), true);
}

Status SessionService::gradcheck(const snapshot::Request& request) {
  SS_TRY(needPlan());
  snapshot::Response response;
  SS_ASSIGN(*response.mutable_gradcheck(), session_->lab().gradcheck(request.gradcheck()));
  return answer(request.id(), std::move(response), true);
}

Status SessionService::ledger(const snapshot::Request& request) {
  SS_TRY(needSession());
  SS_ASSIGN(const Ledger ledger, session_->lab().ledger(request.ledger()));
  snapshot::Response response;
  *response.mutable_ledger() = ledgerAnswer(ledger);
  return answer(request.id(), std::move(response), true);
}

// A model whose inputs have no symbol is planned with the extents it has.
Status SessionService::capacity(const snapshot::Request& request) {
  SS_TRY(needSession());
  snapshot::GetCapacity question = request.capacity();
  auto report = session_->lab().capacity(question);
  if (!report && report.error().code == ErrorCode::kNotFound && question.dimension() == "batch") {
    question.clear_dimension();
    report = session_->lab().capacity(question);
  }
  if (!report) return tl::make_unexpected(report.error());
  snapshot::Response response;
  *response.mutable_capacity() = std::move(*report);
  return answer(request.id(), std::move(response), true);
}

Status SessionService::bisect(const snapshot::Request& request) {
  SS_TRY(needSession());
  BisectQuestion question;
  if (request.bisect().tolerance() != 0) question.tolerance = request.bisect().tolerance();
  if (!(question.tolerance >= 0 && question.tolerance < 1))
    return invalid(fmt::format("bisect: found a tolerance of {}; expected a number from 0 to below 1", question.tolerance));
  question.file = std::filesystem::path(request.bisect().file());
  SS_ASSIGN(const BisectReport report, session_->lab().bisect(question));
  snapshot::Response response;
  *response.mutable_bisect() = bisectAnswer(report);
  return answer(request.id(), std::move(response), true);
}

// The captured state is that of step 0 with the captured data.
Status SessionService::golden(const snapshot::Request& request) {
  SS_TRY(needPlan());
  const std::filesystem::path folder(request.golden().folder());
  snapshot::Response response;
  auto& comparison = *response.mutable_golden();
  std::optional<Golden> captured;
  if (goldens_) {
    SS_ASSIGN(captured, goldens_(folder, session_->options()));
  }
  if (!captured) return answer(request.id(), std::move(response), true);
  comparison.set_captured(true);
  for (const std::string& note : captured->notes) comparison.add_notes(toUtf8(note));
  const std::string data = (folder / "batches.npz").string();
  std::error_code error;
  if (captured->losses.empty() && captured->gradients.empty())
    comparison.set_unchecked("the capture has neither losses nor gradients of PyTorch");
  else if (!std::filesystem::equivalent(session_->options().data, data, error))
    comparison.set_unchecked(
        toUtf8(fmt::format("data '{}': not that of the capture; expected '{}'", session_->options().data, data)));
  else if (session_->nextStep() != 0)
    comparison.set_unchecked(
        fmt::format("step {}: its parameters are not those that were captured; expected step 0", session_->nextStep()));
  if (!comparison.unchecked().empty()) return answer(request.id(), std::move(response), true);
  const auto report = session_->lab().compareWithGolden(*captured);
  if (!report && report.error().code == ErrorCode::kCancelled) return tl::make_unexpected(report.error());
  if (report)
    comparison.MergeFrom(goldenAnswer(*report, *session_));
  else
    comparison.set_unchecked(toUtf8(report.error().message));
  return answer(request.id(), std::move(response), true);
}

ValueId SessionService::valueOf(std::int32_t id, const std::string& name) const {
  return name.empty() ? ValueId{id} : session_->findValue(name);
}

Status SessionService::fetch(const snapshot::Request& request) {
  SS_TRY(needPlan());
  const snapshot::FetchTensor& f = request.fetch();
  const std::vector<std::int64_t> begin(f.begin().begin(), f.begin().end()), extent(f.extent().begin(), f.extent().end());
  constexpr std::int64_t kWindowElements = 1 << 16, kAll = std::int64_t{1} << 27;
  SS_ASSIGN(snapshot::TensorData data, fetchValue(session_->stepper(), valueOf(f.value(), f.name()), begin, extent,
                                                  f.statistics(), f.whole() ? kAll : kWindowElements));
  snapshot::Response response;
  *response.mutable_tensor() = std::move(data);
  return answer(request.id(), std::move(response), true);
}

Status SessionService::edit(const snapshot::Request& request) {
  SS_TRY(needPlan());
  Stepper& stepper = session_->stepper();
  const snapshot::EditTensor& e = request.edit();
  const ValueId id{e.value()};
  if (!e.path().empty()) {
    SS_TRY(editFromFile(stepper, id, e.path()));
  } else if (!e.data().empty()) {
    SS_ASSIGN(const TensorView view, stepper.value(id));
    if (view.bytes() != e.data().size())
      return invalid(fmt::format("edit: found {} bytes; expected {}", e.data().size(), view.bytes()));
    std::string bytes = e.data();
    SS_TRY(editData(stepper, id, {bytes.data(), view.dtype, view.dims}));
  } else {
    SS_TRY(editValue(stepper, id, {e.index().begin(), e.index().end()}, e.number(), e.fill()));
  }
  return answerPosition(request.id(), session_->position());
}

Status SessionService::compareTensor(const snapshot::Request& request) {
  SS_TRY(needPlan());
  const Stepper& stepper = session_->stepper();
  const snapshot::CompareTensor& c = request.compare_tensor();
  const ValueId id{c.value()};
  SS_ASSIGN(snapshot::ComparisonResult result,
            c.path().empty() ? compareWithValue(stepper, id, ValueId{c.other()}) : compareWithFile(stepper, id, c.path()));
  snapshot::Response response;
  response.mutable_compare()->set_equal(result.equal_bits());
  *response.mutable_compare()->add_values() = std::move(result);
  return answer(request.id(), std::move(response), true);
}

Status SessionService::state(std::uint64_t id) {
  snapshot::Response response;
  auto& s = *response.mutable_state();
  s.set_open(session_ != nullptr);
  if (session_) {
    s.set_built(session_->built());
    *s.mutable_position() = session_->position();
    for (const std::int64_t step : session_->ring()) s.add_ring(step);
    for (const snapshot::Breakpoint& b : session_->breakpoints()) *s.add_breakpoints() = b;
  }
  return answer(id, std::move(response), true);
}

}  // namespace stepscope
