#include "engine/lab/rank_capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/comm/collective_bytes.h"
#include "engine/comm/collective_header.h"
#include "engine/exec/complete_plan.h"
#include "engine/plan/plan_collectives.h"
#include "engine/profile/roofline.h"

namespace stepscope {
namespace {

// How many other ranks rank 0 has at each level.
std::vector<std::int64_t> peersOf(const NetworkFile& network, std::int64_t ranks) {
  std::vector<std::int64_t> peers;
  std::int64_t within = 1;
  for (const NetworkLevel& level : network.levels) {
    const std::int64_t all = level.ranks == 0 ? ranks : std::min(level.ranks, ranks);
    peers.push_back(std::max<std::int64_t>(0, all - within));
    within = std::max(within, all);
  }
  return peers;
}

// What rank 0 exchanges with others at each level.
struct LevelBytes {
  std::vector<std::int64_t> sent, moved;  // moved: received, where that is more
};

LevelBytes levelBytesOf(const NetworkFile& network, const PlannedCollective& c, std::int64_t ranks) {
  const std::vector<std::int64_t> peers = peersOf(network, ranks);
  LevelBytes bytes{std::vector<std::int64_t>(peers.size()), std::vector<std::int64_t>(peers.size())};
  const auto levelOf = [&](int rank) {
    std::int64_t within = 1;
    for (std::size_t level = 0; level < peers.size(); ++level) {
      within += peers[level];
      if (rank < within) return level;
    }
    return peers.size() - 1;
  };
  const int from = c.ends.from, to = c.ends.to;
  if (to > 0 && from <= 0) {  // to one rank; of a message also from rank 0
    if (c.sentBytes > 0) bytes.sent[levelOf(to)] = bytes.moved[levelOf(to)] = c.sentBytes;
  } else if (from > 0) {  // from one rank
    if (to <= 0) bytes.moved[levelOf(from)] = c.bytes;
  } else if (to == 0) {  // from all
    for (std::size_t level = 0; from < 0 && level < peers.size(); ++level) bytes.moved[level] = c.bytes * peers[level];
  } else {
    for (std::size_t level = 0; level < peers.size(); ++level)
      bytes.sent[level] = bytes.moved[level] = c.sentBytes / (ranks - 1) * peers[level];
  }
  return bytes;
}

// Turns in which all ranks wait for each other's data.
std::int64_t turnsOf(const Node& node, const PlannedCollective& collective, DType dtype, std::int64_t ranks) {
  const auto size = std::max<std::int64_t>(1, static_cast<std::int64_t>(dtypeSize(dtype)));
  const std::int64_t piece = std::max<std::int64_t>(1, kCollectivePieceBytes / size) * size * ranks;
  const std::int64_t pieces = std::max<std::int64_t>(1, (collective.bytes + piece - 1) / piece);
  if (node.op == "Reduce") return std::max<std::int64_t>(1, (collective.bytes + piece / ranks - 1) / (piece / ranks));
  return node.op == "AllReduce" ? 2 * pieces : node.op.starts_with("ReduceScatter") ? pieces : 1;
}

// How long a micro step waits for its collectives, which run one after another beside its nodes (plan.early).
double exposedNs(const ExecutionPlan& plan, const std::vector<double>& nodeNs, const std::vector<double>& collectiveNs,
                 bool update) {
  double now = 0, free = 0, exposed = 0;  // free: until when collectives run
  std::size_t next = 0;
  std::vector<double> ends(plan.instructions.size(), -1.0);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    for (; next < plan.early.size() && plan.early[next].begins <= static_cast<int>(i); ++next) {
      const auto which = static_cast<std::size_t>(plan.early[next].instruction);
      if (!update && plan.instructions[which].updateEntry) continue;
      ends[which] = free = std::max(free, now) + collectiveNs[which];
    }
    if (!update && plan.instructions[i].updateEntry) continue;
    if (collectiveNs[i] > 0) {
      const double end = ends[i] >= 0 ? std::max(now, ends[i]) : now + collectiveNs[i];
      exposed += end - now;
      now = end;
      free = std::max(free, end);
    }
    now += nodeNs[i];
  }
  return exposed;
}

Result<RankPoint> pointOf(const CapacitySubject& subject, const NetworkFile& network, std::int64_t ranks) {
  BuildRequest request = subject.request;
  request.ranks = static_cast<int>(ranks);
  request.aloneOf = 0;
  request.options.memoryLimit = std::numeric_limits<std::int64_t>::max();  // nothing is allocated
  Batch batch;
  request.firstBatch = [&](const Graph& graph, std::vector<std::string>*) -> Result<Batch> {
    SS_ASSIGN(batch, subject.batchOf(graph, 0));
    return batch;
  };
  BuildLog log{Observer{}};
  std::vector<Stage> stages;
  const Builder builder(subject.model, log, Cancel(subject.cancelled));
  SS_ASSIGN(const auto step, builder.build(std::move(request), stages));
  SS_ASSIGN(const auto variant, builder.specialise(step, signatureOf(batch, step->keptRows), "capacity", stages));
  const TrainOptions& options = step->request.options;
  const Operators& operators = subject.model->registry->operators();
  ExecutionPlan plan = variant->plan;
  SS_ASSIGN(Device * device, findDevice(options.device));
  SS_TRY(completePlan(plan, variant->graph, options.referenceKernels ? Backend::kReference : Backend::kCpu, operators,
                      *device, options.reuse, Cancel(subject.cancelled)));
  RankPoint point{.ranks = ranks};
  point.arenaBytes = plan.arenaBytes + plan.hostArenaBytes;
  point.peakBytes = point.arenaBytes + plan.persistentBytes;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.home == Home::kState && buffer.shares < 0) point.stateBytes += buffer.bytes;
  const std::vector<std::int64_t> peers = peersOf(network, ranks);
  point.levelBytes.assign(network.levels.size(), 0);
  double latency = 0;
  for (std::size_t level = 0; level < peers.size(); ++level)
    if (peers[level] > 0) latency = network.levels[level].latencyNs;
  const std::int64_t micro = std::max<std::int64_t>(1, options.accumulate), others = ranks - 1;
  std::vector<double> collectiveNs(plan.instructions.size(), 0.0), nodeNs(plan.instructions.size(), 0.0);
  for (const PlannedCollective& collective :
       collectivesOf(variant->graph, plan, operators.ops, 0, static_cast<int>(ranks))) {
    if (others == 0) break;
    const Node& node = variant->graph.node(collective.node);
    const std::int64_t times = collective.updateEntry ? 1 : micro;
    const std::int64_t turns = turnsOf(node, collective, variant->graph.value(node.output(0)).type.dtype, ranks);
    double ns = static_cast<double>(1 + turns) * (latency + network.messageNs * static_cast<double>(others));
    const LevelBytes bytes = levelBytesOf(network, collective, ranks);
    for (std::size_t level = 0; level < peers.size(); ++level) {
      point.levelBytes[level] += bytes.sent[level] * times;
      ns += static_cast<double>(bytes.moved[level] + peers[level] * static_cast<std::int64_t>(sizeof(CollectiveHeader))) *
            1e9 / network.levels[level].bytesPerSecond;
    }
    collectiveNs[static_cast<std::size_t>(collective.instruction)] = ns;
    point.communicationNs += ns * static_cast<double>(times);
    point.collectives += times;
    point.sentBytes += collective.sentBytes * times;
  }
  if (subject.peak) {
    const auto roofs = rooflineOf(plan, *subject.peak);
    for (std::size_t i = 0; i < roofs.size(); ++i) {
      nodeNs[i] = collectiveNs[i] > 0 ? 0 : roofs[i].ns;
      point.computeNs += roofs[i].ns * static_cast<double>(plan.instructions[i].updateEntry ? 1 : micro);
    }
  }
  point.exposedNs = exposedNs(plan, nodeNs, collectiveNs, true);
  if (micro > 1) point.exposedNs += static_cast<double>(micro - 1) * exposedNs(plan, nodeNs, collectiveNs, false);
  return point;
}

}  // namespace

Result<std::vector<RankPoint>> planRanks(const CapacitySubject& subject, const NetworkFile& network,
                                         const std::vector<std::int64_t>& ranks) {
  std::vector<RankPoint> points;
  for (const std::int64_t count : ranks) {
    if (subject.cancelled && subject.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "capacity: cancelled");
    if (subject.progress)
      subject.progress(fmt::format("capacity: {} ranks", count), static_cast<std::int64_t>(points.size()),
                       static_cast<std::int64_t>(ranks.size()));
    SS_ASSIGN(points.emplace_back(), pointOf(subject, network, count));
  }
  return points;
}

}  // namespace stepscope
