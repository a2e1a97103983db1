// The part of EventWriter that writes steps and what was noted of their numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/event_writer.h"

namespace stepscope::storage {
namespace {

std::span<const char> asBlob(const std::string& bytes) { return {bytes.data(), bytes.size()}; }

// A number that was not computed is NULL.
std::optional<double> when(bool has, double value) { return has ? std::optional(value) : std::nullopt; }

}  // namespace

Status EventWriter::on(std::int64_t run, const StepDone& event) {
  RunState& state = runs_[run];
  const snapshot::StepRecord& s = event.step;
  const std::optional<std::int64_t> plan = state.plan ? std::optional(state.plan) : std::nullopt;
  SS_STORE_TRY(insert("INSERT INTO steps VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)", run,
                      s.step(), plan, when(s.has_loss(), s.loss()), s.learning_rate(),
                      when(s.has_gradient_norm(), s.gradient_norm()), s.updated(), s.samples(), s.tokens(), s.begin_ns(),
                      s.ns(), s.planned_bytes(), s.peak_bytes(), state.warmUp || s.warm_up(), s.batch(), s.recording_ns(),
                      s.cpu_ns(), s.wait_ns(), event.speed));
  state.warmUp = false;
  state.nextStep = saturatingAdd(s.step(), 1);
  const std::int64_t id = connection_.lastRowId();
  if (event.spanCount > 0) {
    const std::string data = compress(event.spans);
    SS_STORE_TRY(insert("INSERT INTO step_spans VALUES (?, ?, ?, ?, ?)", id, run, event.spanCount,
                        static_cast<std::int64_t>(event.spans.size()), asBlob(data)));
  }
  if (event.spanCount > 0 || s.statistics_size() > 0) SS_STORE_TRY(state.thinning.after(connection_, run, s.step()));
  if (s.has_device()) SS_STORE_TRY(writeDevice(run, id, s.device()));
  SS_STORE_TRY(writeBatch(run, id, s));
  if (s.has_row_losses()) SS_STORE_TRY(writeRowLosses(run, id, s.row_losses()));
  for (const snapshot::RecordedStatistics& r : s.statistics())
    SS_STORE_TRY(writeStatistics(run, s.step(), r.kind(), r.of(), r.value(), r.name(), r.node(), r.statistics()));
  return {};
}

Status EventWriter::writeDevice(std::int64_t run, std::int64_t step, const snapshot::DeviceWork& work) {
  std::int64_t bytes = 0;
  SS_STORE_ASSIGN(const std::string data, packMessage(work, bytes));
  SS_STORE_TRY(insert("INSERT INTO device_work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", step, run, work.rung(),
                      work.rung_reason(), work.records_size(), work.lost(), bytes, asBlob(data), work.counted(),
                      work.uncounted()));
  struct Sum {
    std::int64_t launches = 0, ns = 0, queueNs = 0, counted = 0, read = 0, written = 0;
    double occupancy = 0, tensor = 0;
    bool hasOccupancy = true, hasTensor = true;
  };
  std::vector<Sum> sums(static_cast<std::size_t>(work.kernels_size()));
  for (const snapshot::DeviceRecord& record : work.records()) {
    if (record.kernel() < 0 || record.kernel() >= work.kernels_size()) continue;
    Sum& sum = sums[static_cast<std::size_t>(record.kernel())];
    ++sum.launches;
    sum.ns = saturatingAdd(sum.ns, std::max<std::int64_t>(0, record.end_ns() - record.begin_ns()));
    if (record.returned_ns() != 0)
      sum.queueNs = saturatingAdd(sum.queueNs, std::max<std::int64_t>(0, record.begin_ns() - record.returned_ns()));
    if (!record.has_counters()) continue;
    const snapshot::DeviceCounters& counters = record.counters();
    ++sum.counted;
    sum.read = saturatingAdd(sum.read, std::max<std::int64_t>(0, counters.read_bytes()));
    sum.written = saturatingAdd(sum.written, std::max<std::int64_t>(0, counters.written_bytes()));
    sum.occupancy += counters.occupancy();
    sum.tensor += counters.tensor();
    sum.hasOccupancy &= counters.has_occupancy();
    sum.hasTensor &= counters.has_tensor();
  }
  for (int i = 0; i < work.kernels_size(); ++i) {
    const snapshot::DeviceKernel& kernel = work.kernels(i);
    const Sum& sum = sums[static_cast<std::size_t>(i)];
    if (sum.launches == 0) continue;
    const auto mean = [&](bool has, double total) {
      return when(has && sum.counted > 0, total / static_cast<double>(std::max<std::int64_t>(1, sum.counted)));
    };
    // A mean goes on as a mean over all launches that were counted.
    SS_STORE_TRY(insert(
        "INSERT INTO device_kernels VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET launches "
        "= "
        "launches + excluded.launches, ns = ns + excluded.ns, queue_ns = queue_ns + excluded.queue_ns, achieved_occupancy = "
        "coalesce((achieved_occupancy * counted + excluded.achieved_occupancy * excluded.counted) / (counted + "
        "excluded.counted), achieved_occupancy, excluded.achieved_occupancy), tensor = coalesce((tensor * counted + "
        "excluded.tensor * excluded.counted) / (counted + excluded.counted), tensor, excluded.tensor), counted = counted + "
        "excluded.counted, read_bytes = read_bytes + excluded.read_bytes, written_bytes = written_bytes + "
        "excluded.written_bytes",
        run, kernel.name(), kernel.blocks(), kernel.threads(), kernel.registers(), kernel.shared_bytes(), kernel.occupancy(),
        sum.launches, sum.ns, sum.queueNs, sum.counted, sum.read, sum.written, mean(sum.hasOccupancy, sum.occupancy),
        mean(sum.hasTensor, sum.tensor)));
  }
  return {};
}

Status EventWriter::writeBatch(std::int64_t run, std::int64_t step, const snapshot::StepRecord& record) {
  for (const snapshot::InputDensity& d : record.densities())
    SS_STORE_TRY(insert("INSERT OR REPLACE INTO batch_densities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", step,
                        d.input(), d.kind(), run, d.valid(), d.total(), d.rows(), d.shortest(), d.longest(), d.reason(),
                        d.computed(), d.decision()));
  int position = 0;
  for (const snapshot::TensorData& input : record.inputs()) {
    const snapshot::TensorStatistics& t = input.statistics();
    const auto number = [&](double value) { return when(input.has_statistics(), value); };
    const auto kept = static_cast<std::int64_t>(input.data().size());
    std::string data;
    if (kept > 0) {
      std::int64_t bytes = 0;
      SS_STORE_ASSIGN(data, packMessage(input, bytes));
    }
    SS_STORE_TRY(insert("INSERT INTO batch_inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", step,
                        position++, run, input.value(), input.name(), input.dtype(),
                        fmt::format("[{}]", fmt::join(input.dims(), ", ")), t.count(), number(t.min()), number(t.max()),
                        number(t.mean()), number(t.std()), t.zeros(), t.negative(), t.nan(), t.inf(), kept, asBlob(data)));
  }
  return {};
}

Status EventWriter::writeRowLosses(std::int64_t run, std::int64_t step, const snapshot::RowLosses& losses) {
  std::optional<std::int64_t> worst;
  double largest = 0, sum = 0;
  std::int64_t counted = 0, finite = 0;
  for (int i = 0; i < losses.values_size(); ++i) {
    if (losses.ignored_size() == losses.values_size() && losses.ignored(i)) continue;
    ++counted;
    const double loss = losses.values(i);
    if (std::isfinite(loss)) {
      ++finite;
      sum += loss;
    }
    if (!worst || (!std::isnan(largest) && (std::isnan(loss) || loss > largest))) {
      worst = i;
      largest = loss;
    }
  }
  std::int64_t bytes = 0;
  SS_STORE_ASSIGN(const std::string data, packMessage(losses, bytes));
  return insert("INSERT INTO row_losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", step, run, losses.quantity(),
                losses.unavailable(), losses.values_size(), counted, worst, when(worst.has_value(), largest),
                when(finite > 0, sum / static_cast<double>(std::max<std::int64_t>(1, finite))), counted - finite,
                asBlob(data));
}

Status EventWriter::writeStatistics(std::int64_t run, std::int64_t step, const std::string& kind, const std::string& subject,
                                    std::int32_t value, const std::string& name, std::int32_t node,
                                    const snapshot::TensorStatistics& s) {
  std::string histogram = "[]";
  if (s.histogram_size() > 0) histogram = fmt::format("[{}]", fmt::join(s.histogram(), ","));
  return insert("INSERT INTO tensor_stats VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run, step,
                value, name, s.count(), s.min(), s.max(), s.mean(), s.std(), s.norm(), s.zeros(), s.nan(), s.inf(),
                s.negative(), histogram, kind, subject, node);
}

// A rewind takes back what an earlier one to the same or a later step did: one row is left for both.
Status EventWriter::on(std::int64_t run, const TakenBack& event) {
  SS_STORE_TRY(insert("DELETE FROM rewinds WHERE run = ? AND step >= ?", run, event.step));
  return insert(
      "INSERT INTO rewinds VALUES (NULL, ?, ?, (SELECT coalesce(max(id), 0) FROM steps), "
      "(SELECT coalesce(max(id), 0) FROM alerts), (SELECT coalesce(max(id), 0) FROM tensor_stats))",
      run, event.step);
}

Status EventWriter::on(std::int64_t run, const StatsTaken& event) {
  return writeStatistics(run, event.step, "watched", {}, event.value, event.name, -1, event.stats);
}

}  // namespace stepscope::storage
