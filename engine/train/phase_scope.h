// A span of the phase tree: opened by construction, closed by destruction or by `fail`, which keeps the error with it.
#pragma once

#include "engine/train/session.h"

namespace stepscope {

class Session::PhaseScope {
 public:
  PhaseScope(Session& session, std::string name);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

  // A child that someone without a session has timed; its end is now or before now.
  void child(std::string name, std::int64_t beginNs, std::int64_t ns, std::int64_t count);
  void count(std::int64_t items) { span().set_count(items); }
  snapshot::PassReport& pass() { return *span().mutable_pass(); }
  // Stores the message with the span and hands the error on.
  tl::unexpected<Error> fail(Error error);

 private:
  snapshot::PhaseSpan& span() { return session_.spans_[static_cast<std::size_t>(index_)]; }
  Session& session_;
  int index_;
};

}  // namespace stepscope
