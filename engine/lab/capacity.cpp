#include "engine/lab/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "engine/exec/complete_plan.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr int kMostBudgets = 12;  // that are tried for one point

class Search {
 public:
  Search(CapacitySubject subject, const snapshot::GetCapacity& question)
      : subject_(std::move(subject)), question_(question) {
    // What this machine has does not matter: nothing is allocated.
    subject_.request.options.memoryLimit = std::numeric_limits<std::int64_t>::max();
  }

  Result<snapshot::CapacityReport> run() {
    report_.set_dimension(toUtf8(subject_.dimension));
    report_.set_memory_bytes(question_.memory_bytes());
    if (subject_.peak) report_.set_peaks(peakText(*subject_.peak));
    const bool varies = !subject_.dimension.empty();
    const std::int64_t least = varies ? question_.least() : 0, most = varies ? question_.most() : 0;
    SS_ASSIGN(const std::int64_t largest, search(least, most, false));
    report_.set_largest(largest);
    if (question_.recompute()) {
      const bool all = largest == most && (varies || fits(0, false));
      if (all) {
        report_.set_largest_with_recompute(largest);
      } else {
        SS_ASSIGN(const std::int64_t further, search(largest == 0 ? least : largest + 1, most, true));
        report_.set_largest_with_recompute(std::max(largest, further));
      }
    }
    for (auto& [place, point] : points_) *report_.add_points() = std::move(point);
    return std::move(report_);
  }

 private:
  using Place = std::pair<std::int64_t, bool>;  // extent, with recompute

  bool fits(std::int64_t extent, bool recompute) const {
    const auto it = points_.find({extent, recompute});
    return it != points_.end() && it->second.fits();
  }

  // The largest extent from `least` on that fits; 0: `least` does not.
  Result<std::int64_t> search(std::int64_t least, std::int64_t most, bool recompute) {
    std::int64_t good = 0, bad = 0;
    for (std::int64_t extent = least; bad == 0;) {
      SS_ASSIGN(const bool fit, judge(extent, recompute));
      if (!fit) {
        bad = extent;
        break;
      }
      good = extent;
      if (extent >= most) return good;
      extent = extent > most / 2 ? most : std::max<std::int64_t>(1, extent) * 2;
    }
    while (good > 0 && bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      SS_ASSIGN(const bool fit, judge(middle, recompute));
      (fit ? good : bad) = middle;
    }
    return good;
  }

  Status next(std::int64_t extent, bool recompute) {
    if (subject_.cancelled && subject_.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "capacity: cancelled");
    if (subject_.progress)
      subject_.progress(subject_.dimension.empty()
                            ? std::string("capacity")
                            : fmt::format("capacity: {}={}{}", subject_.dimension, extent, recompute ? " recompute" : ""),
                        done_, 0);
    ++done_;
    return {};
  }

  Result<bool> judge(std::int64_t extent, bool recompute) {
    SS_TRY(next(extent, recompute));
    Batch batch;
    auto step = build(extent, batch);
    if (!step) return refused(extent, std::move(step.error()));
    Result<bool> fit = recompute ? smallestRecompute(extent, *step, batch) : asItIs(extent, *step, batch);
    if (!fit && fit.error().code != ErrorCode::kCancelled) return refused(extent, std::move(fit.error()));
    return fit;
  }

  // What cannot be planned does not fit; unless nothing could be planned before.
  Result<bool> refused(std::int64_t extent, Error error) {
    if (points_.empty() || error.code == ErrorCode::kCancelled) return tl::make_unexpected(std::move(error));
    report_.set_ended(toUtf8(fmt::format("{}={}: {}", subject_.dimension, extent, error.message)));
    return false;
  }

  Result<std::shared_ptr<const SymbolicStep>> build(std::int64_t extent, Batch& batch) const {
    BuildRequest request = subject_.request;
    request.firstBatch = [&](const Graph& graph, std::vector<std::string>*) -> Result<Batch> {
      SS_ASSIGN(batch, subject_.batchOf(graph, extent));
      return batch;
    };
    BuildLog log{Observer{}};
    std::vector<Stage> stages;
    return Builder(subject_.model, log, Cancel(subject_.cancelled)).build(std::move(request), stages);
  }

  Result<bool> asItIs(std::int64_t extent, const std::shared_ptr<const SymbolicStep>& step, const Batch& batch) {
    SS_ASSIGN(snapshot::CapacityPoint point, planned(extent, step, batch, nullptr));
    const bool fit = point.fits();
    points_[{extent, false}] = std::move(point);
    return fit;
  }

  // The largest budget of live activations with which the step fits.
  Result<bool> smallestRecompute(std::int64_t extent, const std::shared_ptr<const SymbolicStep>& step, const Batch& batch) {
    if (!points_.contains({extent, false})) SS_TRY(asItIs(extent, step, batch));
    const snapshot::CapacityPoint plain = points_.at({extent, false});
    if (plain.fits()) return true;
    std::optional<snapshot::CapacityPoint> lowest;
    std::int64_t budget = question_.memory_bytes() - plain.persistent_bytes();
    for (int tried = 0; tried < kMostBudgets && budget > 0; ++tried) {
      auto budgeted = std::make_shared<SymbolicStep>(*step);
      budgeted->request.options.recomputeBudget = budget;
      std::int64_t live = 0;
      SS_ASSIGN(snapshot::CapacityPoint point, planned(extent, budgeted, batch, &live));
      if (!lowest || point.peak_bytes() < lowest->peak_bytes()) lowest = point;
      if (point.fits() || live > budget) break;  // or out of reach of any recompute
      // Workspaces and gaps between buffers come on top of what is alive.
      budget -= std::max<std::int64_t>(point.peak_bytes() - question_.memory_bytes(), budget / 64);
    }
    if (!lowest) return false;
    const bool fit = lowest->fits();
    points_[{extent, true}] = std::move(*lowest);
    return fit;
  }

  static std::string recomputeText(const TrainOptions& options) {
    if (options.recomputeBudget > 0) return fmt::format("budget={}", options.recomputeBudget);
    const auto plan = options.origins.find("recompute.plan");
    return plan == options.origins.end() || plan->second.value.empty() ? "none" : "plan=" + plan->second.value;
  }

  // `live`: gets the largest sum of live activations, without workspaces.
  Result<snapshot::CapacityPoint> planned(std::int64_t extent, std::shared_ptr<const SymbolicStep> step, const Batch& batch,
                                          std::int64_t* live) const {
    const TrainOptions& options = step->request.options;
    BuildLog log{Observer{}};
    std::vector<Stage> stages;
    SS_ASSIGN(const auto variant, Builder(subject_.model, log, Cancel(subject_.cancelled))
                                      .specialise(step, signatureOf(batch, step->keptRows), "capacity", stages));
    ExecutionPlan plan = variant->plan;
    if (live) *live = plan.lowerBoundBytes;
    SS_ASSIGN(Device * device, findDevice(options.device));
    SS_TRY(completePlan(plan, variant->graph, options.referenceKernels ? Backend::kReference : Backend::kCpu,
                        subject_.model->registry->operators(), *device, options.reuse, Cancel(subject_.cancelled)));
    snapshot::CapacityPoint point;
    point.set_extent(extent);
    point.set_batch(batchExtent(step->extents, variant->graph, batch));
    point.set_recompute(toUtf8(recomputeText(options)));
    point.set_arena_bytes(plan.arenaBytes + plan.hostArenaBytes);
    point.set_persistent_bytes(plan.persistentBytes);
    point.set_peak_bytes(point.arena_bytes() + point.persistent_bytes());
    point.set_fits(point.peak_bytes() <= question_.memory_bytes());
    point.set_instructions(static_cast<int>(plan.instructions.size()));
    for (const Buffer& buffer : plan.buffers)
      if (buffer.home == Home::kState && buffer.shares < 0) point.set_state_bytes(point.state_bytes() + buffer.bytes);
    for (const Instruction& instruction : plan.instructions) {
      point.set_flops(point.flops() + instruction.flops);
      point.set_repeated(point.repeated() + (instruction.phase == Phase::kRecompute && !instruction.view));
      point.set_dynamic(point.dynamic() + instruction.dynamic);
    }
    if (subject_.peak)
      for (const InstructionRoof& roof : rooflineOf(plan, *subject_.peak))
        point.set_predicted_ns(point.predicted_ns() + roof.ns);
    return point;
  }

  std::int64_t batchExtent(const std::map<std::string, Dim>& extents, const Graph& graph, const Batch& batch) const {
    if (const auto it = extents.find(subject_.batchDimension); it != extents.end() && it->second.known())
      return it->second.value();
    for (const ValueId id : graph.inputs())
      if (const auto it = batch.arrays.find(graph.value(id).name); it != batch.arrays.end() && !it->second.dims().empty())
        return it->second.dims()[0];
    return 1;
  }

  CapacitySubject subject_;
  snapshot::GetCapacity question_;
  snapshot::CapacityReport report_;
  std::map<Place, snapshot::CapacityPoint> points_;
  std::int64_t done_ = 0;
};

}  // namespace

Result<snapshot::CapacityReport> planCapacity(CapacitySubject subject, const snapshot::GetCapacity& question) {
  return Search(std::move(subject), question).run();
}

}  // namespace stepscope
