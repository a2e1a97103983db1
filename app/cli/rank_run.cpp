#include "app/cli/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/cli/terminal.h"
#include "engine/comm/local_ranks.h"
#include "engine/comm/mpi_transport.h"
#include "engine/snapshot/units.h"
#include "kernels/device_ranks.h"
#include "storage/span_codec.h"

namespace stepscope::cli {
namespace {

// What a rank tells of a step.
enum Column {
  kLoss,
  kHasLoss,
  kNs,
  kWait,
  kMove,
  kExposed,
  kBegin,
  kMet,
  kSent,
  kReceived,
  kPlannedSent,
  kPeak,
  kPlanned,
  kState,
  kSpans,
  kSpanBytes,
  kPlanNumber,
  kStop,
  kSave,
  kColumns
};

// And of each collective.
enum ExchangeColumn { kExchangeWait, kExchangeMove, kExchangeSent, kExchangeBegin, kExchangeExposed, kExchangeColumns };

// mpirun ends all ranks a second after one has died: what there is to say has to be said before.
constexpr std::int64_t kMpiGraceNs = 300'000'000, kGraceNs = 30'000'000'000;

// A number that two tensors of the same bits share; exact in a double.
double fingerprint(const TensorView& tensor) {
  std::uint64_t number = 0xcbf29ce484222325;
  const auto* bytes = static_cast<const unsigned char*>(tensor.data);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) number = (number ^ bytes[i]) * 0x100000001b3;
  return static_cast<double>(number >> 12);
}

// A number that plans share whose instructions are of the same nodes in the same order; exact in a double.
double planNumber(const ExecutionPlan& plan) {
  std::uint64_t number = 0xcbf29ce484222325;
  for (const Instruction& in : plan.instructions)
    number = (number ^ ((static_cast<std::uint64_t>(static_cast<std::uint32_t>(in.node.index)) << 8U) +
                        static_cast<std::uint64_t>(in.kind))) *
             0x100000001b3;
  return static_cast<double>(number >> 12);
}

// A number that mpirun tells its processes: of Open MPI, and of those with the interface of MPICH.
int toldByMpirun(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* const text = std::getenv(name)) return std::max(0, std::atoi(text));
  return otherwise;
}

bool underMpirun() { return toldByMpirun({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 0) > 0; }

int ranksHere(bool mpi, int size) {
  return mpi ? std::max(1, toldByMpirun({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, size)) : size;
}

// "cuda:2" for the third rank of its machine with --device cuda, "cuda:3" with cuda:1.
Result<std::string> gpuOf(const std::string& device, int rankHere) {
  if (device != "cuda" && !device.starts_with("cuda:"))
    return failOption(
        ErrorCode::kInvalidArgument, "distributed",
        fmt::format("nccl on device '{}'; expected --device cuda; hint: local and mpi go with any device", device));
  const std::string number = device == "cuda" ? "0" : device.substr(5);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos || number.size() > 4) return device;
  return fmt::format("cuda:{}", std::stoi(number) + rankHere);
}

// All ranks come here. What fails on one ends the others: they meet at the id.
Result<std::unique_ptr<DeviceRanks>> joinByNccl(Ranks& ranks, const std::string& gpu) {
  SS_ASSIGN(Device* const device, findDevice(gpu));
  DeviceRanksSource* const source = ranksOf(*device);
  if (!source)
    return unsupported(
        fmt::format("device '{}': it has no collectives; expected those of NCCL on cuda", device->facts().name));
  SS_ASSIGN(const std::string version, describeDeviceRanks());
  std::vector<std::byte> id(kDeviceRanksIdBytes);
  if (ranks.rank() == 0) {
    SS_ASSIGN(id, source->ranksId());
  }
  const TensorView view{id.data(), DType::kU8, {static_cast<std::int64_t>(id.size())}};
  SS_TRY(ranks.communicator().broadcast({"id of " + version, 0}, std::span(&view, 1), 0));
  return source->joinRanks(id, ranks.rank(), ranks.size());
}

void sayRanks(const std::vector<storage::RankStep>& ranks) {
  nlohmann::json rows = nlohmann::json::array();
  for (const storage::RankStep& r : ranks) {
    nlohmann::json collectives = nlohmann::json::array();
    for (const storage::RankCollective& c : r.collectives)
      collectives.push_back({{"node", c.node},
                             {"wait_ns", c.waitNs},
                             {"move_ns", c.moveNs},
                             {"exposed_ns", c.exposedNs},
                             {"begin_ns", c.beginNs},
                             {"sent_bytes", c.sentBytes}});
    rows.push_back({{"rank", r.rank},
                    {"loss", r.loss},
                    {"ns", r.ns},
                    {"wait_ns", r.waitNs},
                    {"move_ns", r.moveNs},
                    {"exposed_ns", r.exposedNs},
                    {"begin_ns", r.beginNs},
                    {"sent_bytes", r.sentBytes},
                    {"received_bytes", r.receivedBytes},
                    {"planned_sent_bytes", r.plannedSentBytes},
                    {"peak_bytes", r.peakBytes},
                    {"planned_bytes", r.plannedBytes},
                    {"state_bytes", r.stateBytes},
                    {"collectives", std::move(collectives)}});
  }
  sayJson({{"event", "ranks"}, {"step", ranks.front().step}, {"ranks", std::move(rows)}});
}

}  // namespace

Result<std::unique_ptr<RankRun>> RankRun::join(TrainOptions& options) {
  if (options.distributed == "off") return nullptr;
  const bool nccl = options.distributed == "nccl", mpi = options.distributed == "mpi" || (nccl && underMpirun());
  if (nccl) SS_TRY(gpuOf(options.device, 0));
  SS_ASSIGN(auto transport, mpi ? MpiRanks::join() : LocalProcesses::join(static_cast<int>(options.ranks)));
  std::unique_ptr<RankRun> run(new RankRun(std::make_unique<Communicator>(std::move(transport), options.rankTimeout)));
  run->mpi_ = mpi;
  run->check_ = options.rankCheck;
  run->sums_.resize(static_cast<std::size_t>(run->size()));
  if (options.threads == 0) options.threads = std::max(1, threadsOf(options) / ranksHere(mpi, run->size()));
  if (!run->leads()) {
    speakAs(fmt::format("rank {}: ", run->ranks_->rank()));
    if (mpi && std::freopen("/dev/null", "w", stdout) == nullptr) return fail(ErrorCode::kIo, "rank: /dev/null: not there");
  }
  if (!nccl) return run;
  const Status joined = run->joinGpus(options);
  if (joined) return run;
  (void)run->end(joined);
  return tl::make_unexpected(joined.error());
}

Status RankRun::joinGpus(TrainOptions& options) {
  const int here = mpi_ ? toldByMpirun({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}, ranks_->rank()) : ranks_->rank();
  SS_ASSIGN(options.device, gpuOf(options.device, here));
  SS_ASSIGN(auto joined, joinByNccl(*ranks_, options.device));
  ranks_->communicator().moveBy(std::move(joined));
  return {};
}

void RankRun::asked(int signal) {
  ranks_->communicator().giveUpAt(rankClockNs() + (mpi_ && signal == SIGTERM ? kMpiGraceNs : kGraceNs));
}

Status RankRun::begin(const Session& session) {
  std::vector<double> mine{static_cast<double>(session.nextStep()),
                           static_cast<double>(session.counters().entry - ranks_->rank()),
                           session.counters().micro == 0 ? 1.0 : 0.0};
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
  SS_TRY(sameParameters(session, session.nextStep()));
  met_ = rankClockNs();
  (void)ranks_->takeTimes();
  (void)ranks_->takeExchanges();
  return {};
}

// All numbers are compared first, then the first parameter that makes the difference is looked for.
Status RankRun::sameParameters(const Session& session, std::int64_t step) {
  auto named = session.trained().named(false);
  std::erase_if(named, [&](const auto& parameter) { return session.trained().isPart(parameter.first); });
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

// Once for every build: the variants of one have the same state and the same collectives.
void RankRun::lookAtPlan(const Session& session) {
  if (lookedAt_ == session.plans().build()) return;
  lookedAt_ = session.plans().build();
  planned_ = collectivesOf(session.runningGraph(), session.stepper().plan(), session.registry().operators().ops,
                           ranks_->rank(), ranks_->size());
  stateBytes_ = 0;
  for (const auto& [name, tensor] : session.trained().named(true)) stateBytes_ += static_cast<std::int64_t>(tensor.bytes());
}

std::int64_t RankRun::plannedBytes(const snapshot::StepRecord& record) const {
  std::int64_t bytes = 0;
  for (const PlannedCollective& collective : planned_)
    if (!collective.updateEntry || record.updated()) bytes += collective.sentBytes;
  return bytes;
}

// From the rank of `row` to rank 0, where they are kept if they are of the plan that is recorded.
Status RankRun::bringSpans(const std::string& mine, storage::RankStep& row, int count, std::int64_t bytes, bool samePlan) {
  const CollectivePlace place{"times of instructions", row.step};
  if (row.rank == ranks_->rank()) {
    std::string packed = mine;
    return ranks_->communicator().send(place, {packed.data(), DType::kU8, {bytes}}, 0);
  }
  if (!leads()) return {};
  std::string packed(static_cast<std::size_t>(bytes), '\0');
  SS_TRY(ranks_->communicator().receive(place, {packed.data(), DType::kU8, {bytes}}, row.rank));
  if (!samePlan) {
    lostSpans_ += count;
    return {};
  }
  row.spans = std::move(packed);
  row.spanCount = count;
  return {};
}

std::int64_t RankRun::takeLostSpans() { return std::exchange(lostSpans_, 0); }

Result<RankRun::Wish> RankRun::stepDone(const Session& session, const Wish& wish, snapshot::StepRecord& record,
                                        const Output& output) {
  const CollectiveTimes times = ranks_->takeTimes();
  const std::vector<Ranks::Exchanged> exchanges = ranks_->takeExchanges();
  lookAtPlan(session);
  std::vector<double> mine(kColumns), all;
  mine[kLoss] = record.loss();
  mine[kHasLoss] = record.has_loss() ? 1 : 0;
  mine[kNs] = static_cast<double>(record.ns());
  mine[kWait] = static_cast<double>(times.waitNs);
  mine[kMove] = static_cast<double>(times.moveNs);
  for (const Ranks::Exchanged& exchange : exchanges) mine[kExposed] += static_cast<double>(exchange.exposedNs);
  mine[kBegin] = static_cast<double>(record.begin_ns());
  mine[kMet] = static_cast<double>(met_);
  mine[kSent] = static_cast<double>(times.sentBytes);
  mine[kReceived] = static_cast<double>(times.receivedBytes);
  mine[kPlannedSent] = static_cast<double>(plannedBytes(record));
  mine[kPeak] = static_cast<double>(record.peak_bytes());
  mine[kPlanned] = static_cast<double>(record.planned_bytes());
  mine[kState] = static_cast<double>(stateBytes_);
  const std::string spans = leads() || record.spans().empty() ? std::string() : storage::encodeSpans(record);
  mine[kSpans] = static_cast<double>(record.spans_size());
  mine[kSpanBytes] = static_cast<double>(spans.size());
  mine[kPlanNumber] = record.spans().empty() ? 0 : planNumber(session.stepper().plan());
  mine[kStop] = wish.stop ? 1 : 0;
  mine[kSave] = wish.save ? 1 : 0;
  for (const Ranks::Exchanged& exchange : exchanges) {
    mine.push_back(static_cast<double>(exchange.times.waitNs));
    mine.push_back(static_cast<double>(exchange.times.moveNs));
    mine.push_back(static_cast<double>(exchange.times.sentBytes));
    mine.push_back(static_cast<double>(exchange.beginNs));
    mine.push_back(static_cast<double>(exchange.exposedNs));
  }
  SS_TRY(ranks_->gather({"end of the step", record.step()}, mine, all));
  met_ = rankClockNs();
  const auto told = [&](int r, std::size_t column) { return all[static_cast<std::size_t>(r) * mine.size() + column]; };
  const auto whole = [&](int r, std::size_t column) { return static_cast<std::int64_t>(told(r, column)); };
  double loss = 0;
  Wish common;
  bool losses = true;
  int last = 0;
  newest_.clear();
  for (int r = 0; r < size(); ++r) {
    loss += told(r, kLoss);
    losses = losses && told(r, kHasLoss) != 0;
    common.stop = common.stop || told(r, kStop) != 0;
    common.save = common.save || told(r, kSave) != 0;
    if (told(r, kWait) < told(last, kWait)) last = r;
    Sum& sum = sums_[static_cast<std::size_t>(r)];
    sum.ns += told(r, kNs);
    sum.waitNs += told(r, kWait);
    sum.moveNs += told(r, kMove);
    sum.exposedNs += told(r, kExposed);
    sum.sentBytes += told(r, kSent);
    sum.peakBytes = std::max(sum.peakBytes, told(r, kPeak));
    sum.stateBytes = told(r, kState);
    storage::RankStep& row = newest_.emplace_back();
    row = {.step = record.step(), .rank = r, .loss = told(r, kLoss), .hasLoss = told(r, kHasLoss) != 0};
    row.ns = whole(r, kNs);
    row.waitNs = whole(r, kWait);
    row.moveNs = whole(r, kMove);
    row.exposedNs = whole(r, kExposed);
    // Its clock was so far ahead of that of rank 0 when all ranks met at the end of the step before.
    const std::int64_t ahead = whole(r, kMet) - whole(0, kMet);
    row.beginNs = whole(r, kBegin) - ahead;
    row.sentBytes = whole(r, kSent);
    row.receivedBytes = whole(r, kReceived);
    row.plannedSentBytes = whole(r, kPlannedSent);
    row.peakBytes = whole(r, kPeak);
    row.plannedBytes = whole(r, kPlanned);
    row.stateBytes = whole(r, kState);
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      const std::size_t first = kColumns + i * kExchangeColumns;
      row.collectives.push_back({exchanges[i].node, whole(r, first + kExchangeWait), whole(r, first + kExchangeMove),
                                 whole(r, first + kExchangeSent), whole(r, first + kExchangeBegin) - ahead,
                                 whole(r, first + kExchangeExposed)});
    }
  }
  for (int r = 1; r < size(); ++r)
    if (whole(r, kSpanBytes) > 0)
      SS_TRY(bringSpans(spans, newest_[static_cast<std::size_t>(r)], static_cast<int>(whole(r, kSpans)),
                        whole(r, kSpanBytes), told(r, kPlanNumber) == told(0, kPlanNumber)));
  ++sums_[static_cast<std::size_t>(last)].last;
  ++steps_;
  if (losses) record.set_loss(loss / size());
  if (output.json() && leads()) sayRanks(newest_);
  if (check_) SS_TRY(sameParameters(session, session.nextStep()));
  // What ranks tell each other of a step is no part of the next one.
  (void)ranks_->takeTimes();
  (void)ranks_->takeExchanges();
  return common;
}

void RankRun::summary(const Output& output) const {
  if (output.json() || steps_ == 0) return;
  std::vector<std::vector<std::string>> rows;
  const auto mean = [&](double sum) { return units::time(static_cast<std::int64_t>(sum / static_cast<double>(steps_))); };
  for (std::size_t r = 0; r < sums_.size(); ++r)
    rows.push_back({std::to_string(r), mean(sums_[r].ns), mean(sums_[r].exposedNs), mean(sums_[r].waitNs),
                    mean(sums_[r].moveNs),
                    units::bytes(static_cast<std::int64_t>(sums_[r].sentBytes / static_cast<double>(steps_))),
                    units::bytes(static_cast<std::int64_t>(sums_[r].stateBytes)),
                    units::bytes(static_cast<std::int64_t>(sums_[r].peakBytes)), std::to_string(sums_[r].last)});
  say("{}\n", table({"rank", "step", "of it exposed", "waits", "sends", "sent", "state", "peak", "came last"}, rows));
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
