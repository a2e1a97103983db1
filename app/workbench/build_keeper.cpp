// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/build_keeper.h"

namespace stepscope {

BuildKeeper::BuildKeeper(SnapshotStore& store, ModelSession& session, QObject* parent)
    : QObject(parent), store_(store), session_(session) {
  // Queued: what the end of a request leads to goes first.
  connect(&session_, &ModelSession::busyChanged, this, &BuildKeeper::next, Qt::QueuedConnection);
}

void BuildKeeper::begin() {
  ++build_;
  stages_ = store_.stages();
  const bool whole =
      store_.graph() && !stages_.isEmpty() && QString::fromStdString(store_.graph()->graph().phase()) == stages_.last();
  left_ = whole ? static_cast<int>(stages_.size()) - 1 : 0;
  verdicts_ = false;
  asking_ = false;
  next();
}

void BuildKeeper::beginAgain() {
  ++build_;
  left_ = 0;
  verdicts_ = asking_ = false;
  next();
}

void BuildKeeper::ask(snapshot::Request request, const std::function<void(const Delivery&)>& answer) {
  asking_ = true;
  session_.client().request(
      std::move(request), QStringLiteral("reading the build"),
      [this, answer, build = build_](const Delivery& d) {
        if (!d.response->done() || build != build_) return;
        asking_ = false;
        // Cancelled together with something else: asked again. Any other error ends it; the file says what it has not.
        if (d.response->has_error() && d.response->error().code() != "cancelled") {
          left_ = 0;
          verdicts_ = true;
          return;
        }
        if (!d.response->has_error()) answer(d);
        next();
      },
      true);
}

void BuildKeeper::next() {
  if (asking_ || !session_.built() || session_.busy() || !session_.client().alive()) return;
  snapshot::Request request;
  if (!verdicts_) {
    request.mutable_determinism();
    ask(std::move(request), [this](const Delivery& d) {
      verdicts_ = true;
      if (!d.response->has_determinism()) return;
      store_.setDeterminism({d.response->determinism().nodes().begin(), d.response->determinism().nodes().end()});
      emit verdictsRead();
    });
    return;
  }
  if (left_ == 0) return;
  request.mutable_graph()->set_phase(stages_[left_ - 1].toStdString());
  ask(std::move(request), [this](const Delivery& d) {
    --left_;
    if (d.graph) emit stageRead(d.graph, left_);
  });
}

}  // namespace stepscope
