// What a run of many processes would need and exchange, without any of them: the plan of one rank for each number of ranks,
// as a session of it would run (engine/lab/capacity.h), with what its collectives send and the time that takes on a network.
//
// Bytes are exact: they are those that Communicator sends (engine/comm/collective_bytes.h). Times are a model of how it
// sends them, of a rank that waits for nobody:
//
//   header    the rank tells all others where it is: latency, 512 bytes and a message to each
//   data      its bytes go to the others in equal parts: those at each level of the network by the speed of that level, one
//             level after another, and a message to each; latency once for every turn (an AllReduce has two for each piece)
//
// Latency is that of the farthest level that has another rank. What runs beside nodes (engine/plan/early_collectives.h) is
// exposed as far as they are too short for it: without a machine they take no time, and all of it is. The step of the
// machine is its roofline (engine/profile/roofline.h), so a real one takes longer, and its share of communication is
// smaller. Rank 0 is planned: others send a few bytes less where ranks do not divide the elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/lab/capacity.h"
#include "engine/profile/network_file.h"

namespace stepscope {

struct RankPoint {
  std::int64_t ranks = 1;
  std::int64_t peakBytes = 0, arenaBytes = 0, stateBytes = 0;  // of one rank
  // Of one update with all its micro steps.
  std::int64_t collectives = 0, sentBytes = 0;
  double communicationNs = 0, exposedNs = 0;  // all of its collectives; the part during which no node runs
  std::vector<std::int64_t> levelBytes;       // of sentBytes, by level of the network
  double computeNs = 0;                       // 0: the machine was not said
};

// One point for each number of ranks. Errors: those of building a plan; kCancelled.
Result<std::vector<RankPoint>> planRanks(const CapacitySubject& subject, const NetworkFile& network,
                                         const std::vector<std::int64_t>& ranks);

}  // namespace stepscope
