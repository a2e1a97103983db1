#include "engine/build/build_log.h"

#include <cstdlib>
#include <fstream>
#include <new>

#include "engine/exec/executor.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {

void BuildLog::beginBuild() {
  if (firstSpans_.empty())
    firstSpans_.push_back(0);  // what reading the file took belongs to the first build
  else if (built_)
    firstSpans_.push_back(spans_.size());
}

std::vector<snapshot::PhaseSpan> BuildLog::spansOf(std::size_t build) const {
  const std::size_t first = firstSpans_[build];
  const std::size_t end = build + 1 < firstSpans_.size() ? firstSpans_[build + 1] : spans_.size();
  std::vector<snapshot::PhaseSpan> spans(spans_.begin() + static_cast<std::ptrdiff_t>(first),
                                         spans_.begin() + static_cast<std::ptrdiff_t>(end));
  for (snapshot::PhaseSpan& span : spans)
    if (span.parent() >= 0) span.set_parent(span.parent() - static_cast<int>(first));
  return spans;
}

void BuildLog::raise(snapshot::Alert alert) {
  if (!told_.emplace(alert.step(), alert.code() + alert.message()).second) return;
  alert.set_message(toUtf8(alert.message()));
  alerts_.push_back(alert);
  if (observer_.alert) observer_.alert(alert);
}

void BuildLog::warn(std::string code, std::string message, std::int64_t step) {
  snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, std::move(code), std::move(message));
  alert.set_step(step);
  raise(std::move(alert));
}

void BuildLog::takeBackFrom(std::int64_t step) {
  told_.erase(told_.lower_bound({step, std::string()}), told_.end());
  std::erase_if(alerts_, [step](const snapshot::Alert& alert) { return alert.step() >= step; });
}

BuildLog::Scope::Scope(BuildLog& log, std::string name, bool canBeOff)
    : log_(log), index_(static_cast<int>(log.spans_.size())) {
  snapshot::PhaseSpan span;
  if (canBeOff) span.mutable_pass()->set_name(name);
  span.set_name(std::move(name));
  span.set_depth(static_cast<int>(log.open_.size()));
  span.set_parent(log.open_.empty() ? -1 : log.open_.back());
  span.set_begin_ns(monotonicNs());
  log.spans_.push_back(span);
  log.open_.push_back(index_);
  if (!log.observer_.begins) return;
  span.set_ns(-1);
  log.observer_.begins(span);
}

BuildLog::Scope::~Scope() {
  span().set_ns(monotonicNs() - span().begin_ns());
  span().set_peak_bytes(residentSetBytes());
  log_.open_.pop_back();
  try {
    if (log_.observer_.phase) log_.observer_.phase(span());
  } catch (const std::bad_alloc&) {  // nobody hears of this phase; why the build ends is on its way
  }
}

void BuildLog::Scope::child(std::string name, std::int64_t beginNs, std::int64_t ns, std::int64_t count) {
  snapshot::PhaseSpan child;
  child.set_name(std::move(name));
  child.set_depth(span().depth() + 1);
  child.set_parent(index_);
  child.set_begin_ns(beginNs);
  child.set_ns(ns);
  child.set_count(count);
  child.set_peak_bytes(residentSetBytes());
  log_.spans_.push_back(std::move(child));
  if (log_.observer_.phase) log_.observer_.phase(log_.spans_.back());
}

tl::unexpected<Error> BuildLog::Scope::fail(Error error) {
  span().set_error(toUtf8(error.message));
  return tl::make_unexpected(std::move(error));
}

namespace {

std::int64_t statusBytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtoll(line.c_str() + field.size(), nullptr, 10) * 1024;
  return 0;
}

}  // namespace

// Not the peak: that would be of a larger model that the process had before, or of the program that started it.
std::int64_t residentSetBytes() { return statusBytes("VmRSS:"); }

}  // namespace stepscope
