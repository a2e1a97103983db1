#include "engine/train/phase_scope.h"

#include "engine/train/session_parts.h"
#include "engine/train/utf8.h"

namespace stepscope {

Session::PhaseScope::PhaseScope(Session& session, std::string name)
    : session_(session), index_(static_cast<int>(session.spans_.size())) {
  snapshot::PhaseSpan span;
  span.set_name(std::move(name));
  span.set_depth(static_cast<int>(session.openSpans_.size()));
  span.set_parent(session.openSpans_.empty() ? -1 : session.openSpans_.back());
  span.set_begin_ns(monotonicNs());
  session.spans_.push_back(std::move(span));
  session.openSpans_.push_back(index_);
}

Session::PhaseScope::~PhaseScope() {
  span().set_ns(monotonicNs() - span().begin_ns());
  span().set_peak_bytes(residentPeakBytes());
  session_.openSpans_.pop_back();
  if (session_.observer_.phase) session_.observer_.phase(span());
}

void Session::PhaseScope::child(std::string name, std::int64_t beginNs, std::int64_t ns, std::int64_t count) {
  snapshot::PhaseSpan child;
  child.set_name(std::move(name));
  child.set_depth(span().depth() + 1);
  child.set_parent(index_);
  child.set_begin_ns(beginNs);
  child.set_ns(ns);
  child.set_count(count);
  child.set_peak_bytes(residentPeakBytes());
  session_.spans_.push_back(std::move(child));
  if (session_.observer_.phase) session_.observer_.phase(session_.spans_.back());
}

tl::unexpected<Error> Session::PhaseScope::fail(Error error) {
  span().set_error(toUtf8(error.message));
  return tl::make_unexpected(std::move(error));
}

}  // namespace stepscope
