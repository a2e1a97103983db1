// What a low precision costs and what it risks: one step in it next to the same step in float32.
//
// Both start from one state and one batch, in plans and states of their own: the session's state and its begun step stay as
// they are, and nothing is committed. An update is made even where the micro step would only accumulate. Then the step runs
// again with each override that may help, so that what an override gives is measured; and both plans take turns to be timed.
//
// Errors: kInvalidArgument for a precision that is none; kOutOfMemory where the states do not fit into memory next to each
// other; kCancelled; those of building and running.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/build/builder.h"
#include "engine/snapshot/precision.pb.h"
#include "engine/state/state.h"

namespace stepscope {

// What is studied. `request` is that of the present plan: its options say all but the precision.
struct PrecisionSubject {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;
  Batch batch;
  StateSnapshot start;                     // of the step
  std::atomic<bool>* cancelled = nullptr;  // ends the study; taken back by it
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;  // may be null
};

// The whole study; it takes seconds on small models, and a few builds and steps on large ones.
Result<snapshot::PrecisionReport> studyPrecision(PrecisionSubject subject, const snapshot::GetPrecision& question);

}  // namespace stepscope
