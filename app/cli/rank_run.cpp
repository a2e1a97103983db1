#include "app/cli/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/cli/json_number.h"
#include "app/cli/terminal.h"
#include "engine/comm/local_ranks.h"
#include "engine/comm/mpi_transport.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

// What a rank tells of a step.
enum Column { kLoss, kHasLoss, kNs, kWait, kMove, kSent, kStop, kColumns };

// mpirun ends all ranks a second after one has died: what there is to say has to be said before.
constexpr std::int64_t kMpiGraceNs = 300'000'000, kGraceNs = 30'000'000'000;

// A number that two tensors of the same bits share; exact in a double.
double fingerprint(const TensorView& tensor) {
  std::uint64_t number = 0xcbf29ce484222325;
  const auto* bytes = static_cast<const unsigned char*>(tensor.data);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) number = (number ^ bytes[i]) * 0x100000001b3;
  return static_cast<double>(number >> 12);
}

int ranksHere(const TrainOptions& options, int size) {
  if (options.distributed == "local") return size;
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* const text = std::getenv(name)) return std::max(1, std::atoi(text));
  return size;
}

}  // namespace

Result<std::unique_ptr<RankRun>> RankRun::join(TrainOptions& options) {
  if (options.distributed == "off") return nullptr;
  const bool mpi = options.distributed == "mpi";
  SS_ASSIGN(auto transport, mpi ? MpiRanks::join() : LocalProcesses::join(static_cast<int>(options.ranks)));
  std::unique_ptr<RankRun> run(new RankRun(std::make_unique<Communicator>(std::move(transport), options.rankTimeout)));
  run->mpi_ = mpi;
  run->check_ = options.rankCheck;
  run->sums_.resize(static_cast<std::size_t>(run->size()));
  if (options.threads == 0) options.threads = std::max(1, threadsOf(options) / ranksHere(options, run->size()));
  if (!run->leads()) {
    speakAs(fmt::format("rank {}: ", run->ranks_->rank()));
    if (mpi && std::freopen("/dev/null", "w", stdout) == nullptr) return fail(ErrorCode::kIo, "rank: /dev/null: not there");
  }
  return run;
}

void RankRun::asked(int signal) {
  ranks_->communicator().giveUpAt(rankClockNs() + (mpi_ && signal == SIGTERM ? kMpiGraceNs : kGraceNs));
}

Status RankRun::begin(const Session& session) {
  std::vector<double> mine{static_cast<double>(session.nextStep()),
                           static_cast<double>(session.nextEntry() - ranks_->rank()), session.betweenRounds() ? 1.0 : 0.0};
  std::vector<double> all;
  SS_TRY(ranks_->gather({"begin of the run", session.nextStep()}, mine, all));
  for (int r = 1; r < size(); ++r)
    for (std::size_t i = 0; i < 2; ++i)
      if (all[mine.size() * static_cast<std::size_t>(r) + i] != all[i])
        return invalid(fmt::format("rank {}: begins at {} {}, rank 0 at {}; expected the same on all ranks", r,
                                   i == 0 ? "step" : "entry", all[mine.size() * static_cast<std::size_t>(r) + i], all[i]));
  if (all[2] == 0)
    return invalid(
        "the state that is gone on from stands in the middle of a round of accumulation, whose sums are those of "
        "one process; expected one at the end of a round");
  return sameParameters(session, session.nextStep());
}

// All numbers are compared first, then the first parameter that makes the difference is looked for.
Status RankRun::sameParameters(const Session& session, std::int64_t step) {
  const auto named = session.namedState(false);
  std::vector<double> mine, all;
  for (const auto& [name, tensor] : named) mine.push_back(tensor.dtype == DType::kString ? 0.0 : fingerprint(tensor));
  SS_TRY(ranks_->gather({"parameters", step}, mine, all));
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (int r = 1; r < size(); ++r)
      if (all[mine.size() * static_cast<std::size_t>(r) + i] != all[i])
        return invalid(
            fmt::format("parameter '{}': rank {} holds other bits than rank 0 before step {}; expected the same on "
                        "all ranks",
                        std::next(named.begin(), static_cast<std::ptrdiff_t>(i))->first, r, step));
  return {};
}

Result<bool> RankRun::stepDone(const Session& session, bool stop, snapshot::StepRecord& record, const Output& output) {
  const CollectiveTimes times = ranks_->takeTimes();
  std::vector<double> mine(kColumns), all;
  mine[kLoss] = record.loss();
  mine[kHasLoss] = record.has_loss() ? 1 : 0;
  mine[kNs] = static_cast<double>(record.ns());
  mine[kWait] = static_cast<double>(times.waitNs);
  mine[kMove] = static_cast<double>(times.moveNs);
  mine[kSent] = static_cast<double>(times.sentBytes);
  mine[kStop] = stop ? 1 : 0;
  SS_TRY(ranks_->gather({"end of the step", record.step()}, mine, all));
  const auto told = [&](int r, Column column) { return all[static_cast<std::size_t>(r * kColumns + column)]; };
  double loss = 0;
  bool allStop = false, losses = true;
  int last = 0;
  nlohmann::json rows = nlohmann::json::array();
  for (int r = 0; r < size(); ++r) {
    loss += told(r, kLoss);
    losses = losses && told(r, kHasLoss) != 0;
    allStop = allStop || told(r, kStop) != 0;
    if (told(r, kWait) < told(last, kWait)) last = r;
    Sum& sum = sums_[static_cast<std::size_t>(r)];
    sum.ns += told(r, kNs);
    sum.waitNs += told(r, kWait);
    sum.moveNs += told(r, kMove);
    sum.sentBytes += told(r, kSent);
    if (output.json())
      rows.push_back({{"rank", r},
                      {"loss", numberJson(told(r, kLoss))},
                      {"ns", static_cast<std::int64_t>(told(r, kNs))},
                      {"wait_ns", static_cast<std::int64_t>(told(r, kWait))},
                      {"move_ns", static_cast<std::int64_t>(told(r, kMove))},
                      {"sent_bytes", static_cast<std::int64_t>(told(r, kSent))}});
  }
  ++sums_[static_cast<std::size_t>(last)].last;
  ++steps_;
  if (losses) record.set_loss(loss / size());
  if (output.json() && leads()) sayJson({{"event", "ranks"}, {"step", record.step()}, {"ranks", std::move(rows)}});
  if (check_) SS_TRY(sameParameters(session, session.nextStep()));
  return allStop;
}

void RankRun::summary(const Output& output) const {
  if (output.json() || steps_ == 0) return;
  std::vector<std::vector<std::string>> rows;
  const auto mean = [&](double sum) { return units::time(static_cast<std::int64_t>(sum / static_cast<double>(steps_))); };
  for (std::size_t r = 0; r < sums_.size(); ++r)
    rows.push_back({std::to_string(r), mean(sums_[r].ns), mean(sums_[r].waitNs), mean(sums_[r].moveNs),
                    units::bytes(static_cast<std::int64_t>(sums_[r].sentBytes / static_cast<double>(steps_))),
                    std::to_string(sums_[r].last)});
  say("{}\n", table({"rank", "step", "of it waits", "of it sends", "sent", "came last"}, rows));
}

Status RankRun::end(const Status& run) {
  ranks_->communicator().end(run ? std::string() : run.error().message);
  if (mpi_) {
    if (run) MpiRanks::finish();  // else mpirun ends the others, as soon as this process ends
    return {};
  }
  const int code = LocalProcesses::wait();
  if (run && code != 0)
    return fail(ErrorCode::kIo, fmt::format("a rank ended with code {}; expected that all end well", code));
  return {};
}

}  // namespace stepscope::cli
