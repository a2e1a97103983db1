// SPDX-License-Identifier: GPL-3.0-or-later
// Made-up training steps of any size for tests, benchmarks and pictures of the drawn views: a GPT-like decoder with its
// gradient and AdamW, a plan with addresses, and times. Deterministic; the numbers mean nothing.
#pragma once

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope::generated {

struct StepOptions {
  int blocks = 12;
  bool gradient = true;
  bool optimizer = true;
  bool recompute = false;  // activations of the MLP are recomputed in the backward phase
  bool fused = true;       // bias and GELU as one node; false: the graph before that pass
  bool modulePaths = true;
};

snapshot::Graph step(const StepOptions& options = {});

// Number of blocks that gives about `nodes` nodes.
int blocksFor(int nodes);

// Instructions in graph order, buffers placed first-fit after their last use.
snapshot::Plan plan(const snapshot::Graph& graph);

// One recorded step of that plan on two threads.
snapshot::StepRecord record(const snapshot::Plan& plan, std::int64_t step, std::int64_t beginNs);

// A phase tree as of a build of this graph.
std::vector<snapshot::PhaseSpan> phases();

}  // namespace stepscope::generated
