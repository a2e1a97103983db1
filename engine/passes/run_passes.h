// Runs the passes of one phase: names each on the graph, times it, tells an observer, and checks the graph after it.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/passes/pass.h"
#include "engine/passes/pipeline.h"

namespace stepscope {

// One run of one pass; valid during the call that hands it over.
struct PassRun {
  const Pass& pass;
  int round = 0;  // of the repeated passes, from 0
  std::size_t nodesBefore = 0, nodesAfter = 0;
  std::int64_t beginNs = 0, ns = 0;  // steady clock
  const PassResult& result;
  const Error* error = nullptr;  // of a pass that failed, or left the graph broken
};

struct RunOptions {
  // Which passes run; absent: those that are on by default. Not asked for mandatory ones.
  std::function<bool(const Pass&)> enabled;
  std::function<void(const Pass&)> begin;   // before each pass
  std::function<void(const PassRun&)> end;  // after each pass, also after one that failed
  bool verify;                              // Graph::verify after every pass; as verifiesPasses() says unless set
  RunOptions();
};

// Whether passes are verified where nobody says otherwise: environment variable STEPSCOPE_VERIFY_PASSES (0 or 1), which
// tests set, else whether the build has SS_VERIFY_PASSES (presets debug, sanitize and thread).
bool verifiesPasses();

// Where the context knows the extents of a batch, PassResult::saved tells what a pass that changed the graph saves.
// A pass without a switch leaves new nodes where it likes; the order is made topological after it. Errors: those of the
// passes; kUnsupported with the reason when the rounds end and a lowering was blocked; kInternal, naming the pass, when
// verification finds the graph broken; kCancelled, before the pass that it names.
Status runPasses(const PassList& list, Graph& graph, PassContext& context, const RunOptions& options = {});

}  // namespace stepscope
