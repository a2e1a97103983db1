#include "engine/lab/trial_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/build/name_pattern.h"
#include "engine/lab/option_proof.h"

namespace stepscope {
namespace {

class Candidates {
 public:
  Candidates(const TrialBase& base, std::optional<NamePattern> only) : base_(base), only_(std::move(only)) {}

  Status add(const std::string& option, const std::string& to, std::int64_t batch = 0) {
    ++offered_;
    if (only_ && !only_->foundIn(option + "=" + to)) return {};
    TrialCandidate candidate{option, optionValue(base_.options, option, base_.table), to, base_.options, batch};
    if (option == "threads") candidate.from = std::to_string(threadsOf(base_.options));
    if (option == "dim") candidate.from = fmt::format("{}={}", base_.batchDimension, base_.batch);
    SS_TRY(applySetting(candidate.options, option, to, "trial", base_.table));
    // A combination that makes no sense is none to try.
    if (checkOptions(candidate.options)) list_.push_back(std::move(candidate));
    return {};
  }

  // All other values of an option that has a list of them.
  Status addChoices(const OptionInfo& info) {
    const std::string name(info.name), now = optionValue(base_.options, name, base_.table);
    for (const std::string_view choice : info.choices)
      if (!choice.empty() && choice != now && !choice.starts_with("mirror") && !isOfDevices(name, choice))
        SS_TRY(add(name, std::string(choice)));
    return {};
  }

  // What the CPU's kernels have no other form for.
  bool isOfDevices(std::string_view option, std::string_view choice) const {
    return option == "deterministic" && choice == "off" && base_.options.device == "cpu";
  }

  Status addThreads() {
    const int now = threadsOf(base_.options);
    for (int threads = 1; threads < base_.cores; threads *= 2)
      if (threads != now) SS_TRY(add("threads", std::to_string(threads)));
    return base_.cores == now ? Status() : add("threads", std::to_string(base_.cores));
  }

  // The plan's own choice of streams next to the one that somebody has made.
  Status addPartition(const std::string& name) { return base_.options.streamPartition ? add(name, "") : Status(); }

  Status addRecompute(const std::string& name) {
    if (name == "recompute.plan")
      return base_.options.recomputePlan.empty() || base_.options.recomputeBudget > 0 ? Status() : add(name, "");
    if (base_.options.recomputeBudget > 0) return add(name, "0");
    for (const std::int64_t quarters : {3, 2})
      if (const std::int64_t budget = base_.liveBytes / 4 * quarters; budget > 0) SS_TRY(add(name, std::to_string(budget)));
    return {};
  }

  std::size_t offered() const { return offered_; }
  std::vector<TrialCandidate> take() { return std::move(list_); }

 private:
  const TrialBase& base_;
  std::optional<NamePattern> only_;
  std::size_t offered_ = 0;
  std::vector<TrialCandidate> list_;
};

}  // namespace

Result<std::vector<TrialCandidate>> trialCandidates(const TrialBase& base, const snapshot::GetTrials& question) {
  std::optional<NamePattern> only;
  if (!question.only().empty()) {
    SS_ASSIGN(only, NamePattern::compile("only", question.only()));
  }
  Candidates candidates(base, std::move(only));
  for (const OptionInfo& info : base.table) {
    const std::string name(info.name);
    if (name == "threads")
      SS_TRY(candidates.addThreads());
    else if (name.starts_with("recompute."))
      SS_TRY(candidates.addRecompute(name));
    else if (name == "streams.partition")
      SS_TRY(candidates.addPartition(name));
    else if (name.starts_with("cuda.") && (base.options.device == "cpu" || base.options.device.starts_with("mirror")))
      continue;
    else if (name == "kernels" && question.only().empty())
      continue;
    else if (name == "record.flight" && question.only().empty())
      continue;
    else if ((isOptimisation(name) || name == "record.flight") && !info.choices.empty())
      SS_TRY(candidates.addChoices(info));
  }
  if (question.batches_size() > 0 && base.batchDimension.empty())
    return invalidOption("batches",
                         "the extents of all inputs are numbers, or come from --data; expected a batch that "
                         "can be changed");
  for (const std::int64_t batch : question.batches()) {
    if (batch < 1) return invalidOption("batches", fmt::format("found {}; expected extents from 1 on", batch));
    if (batch != base.batch) SS_TRY(candidates.add("dim", fmt::format("{}={}", base.batchDimension, batch), batch));
  }
  auto list = candidates.take();
  if (list.empty())
    return failOption(ErrorCode::kNotFound, "only",
                      fmt::format("'{}' matches none of {} candidates, such as pass.cse=off or threads=1", question.only(),
                                  candidates.offered()));
  return list;
}

}  // namespace stepscope
