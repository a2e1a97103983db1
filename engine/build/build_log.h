// What a build tells while it runs: spans of phases and passes, and alerts. One log for the life of a session.
//
// Spans form a tree: a Scope opens one by construction and closes it by destruction. Those of one build follow each other;
// beginBuild() says where the next one starts. Nanoseconds of the monotonic clock.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "kernels/status.h"

namespace stepscope {

struct Stage;  // stage.h

// Told about what happens while a call runs. Calls come on the session's thread; all are optional.
struct Observer {
  std::function<void(const snapshot::PhaseSpan&)> phase;  // a phase or a child of it has ended
  std::function<void(const snapshot::Alert&)> alert;
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;
  std::function<void(const snapshot::PhaseSpan&)> begins;  // a phase or a pass of it; its ns is -1
  std::function<void(const Stage&)> stage;                 // a graph that is kept, as soon as it is
};

class BuildLog {
 public:
  explicit BuildLog(Observer observer) : observer_(std::move(observer)) {}
  BuildLog(const BuildLog&) = delete;
  BuildLog& operator=(const BuildLog&) = delete;
  class Scope;

  const Observer& observer() const { return observer_; }
  const std::vector<snapshot::PhaseSpan>& spans() const { return spans_; }

  // Spans from here on belong to another build. One that failed before anything was built counts with the next attempt.
  void beginBuild();
  void built() { built_ = true; }  // a build has succeeded
  std::size_t builds() const { return firstSpans_.size(); }
  std::vector<snapshot::PhaseSpan> spansOf(std::size_t build) const;  // below builds(); parents count within it

  // An alert of a step is told once for that step; one of no step (-1), as those of a build, once.
  void raise(snapshot::Alert alert);
  void warn(std::string code, std::string message, std::int64_t step = -1);
  // This step and later ones have not run any more: their alerts are forgotten, and told again when they run again.
  void takeBackFrom(std::int64_t step);
  const std::vector<snapshot::Alert>& alerts() const { return alerts_; }

 private:
  Observer observer_;
  std::vector<snapshot::PhaseSpan> spans_;
  std::vector<int> open_;
  std::vector<std::size_t> firstSpans_;  // of each build
  bool built_ = false;
  std::vector<snapshot::Alert> alerts_;
  std::set<std::pair<std::int64_t, std::string>> told_;  // step, code and message
};

// A span of the tree, with what its phase counts and reports.
class BuildLog::Scope {
 public:
  // `canBeOff`: a pass with an option of its own, which the span names from the beginning (pass.name).
  Scope(BuildLog& log, std::string name, bool canBeOff = false);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // A child that someone without a log has timed; its end is now or before now.
  void child(std::string name, std::int64_t beginNs, std::int64_t ns, std::int64_t count);
  void count(std::size_t items) { span().set_count(static_cast<std::int64_t>(items)); }
  snapshot::PassReport& pass() { return *span().mutable_pass(); }
  // Stores the message with the span and hands the error on.
  tl::unexpected<Error> fail(Error error);

 private:
  snapshot::PhaseSpan& span() { return log_.spans_[static_cast<std::size_t>(index_)]; }
  BuildLog& log_;
  int index_;
};

// The resident set of the process now, in bytes.
std::int64_t residentSetBytes();

}  // namespace stepscope
