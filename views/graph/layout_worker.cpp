// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/layout_worker.h"

namespace stepscope {

LayoutWorker::LayoutWorker(QObject* parent) : QObject(parent) { pool_.setMaxThreadCount(1); }

LayoutWorker::~LayoutWorker() {
  if (cancel_) *cancel_ = true;
  pool_.waitForDone();
}

void LayoutWorker::cancel() {
  if (!cancel_) return;
  *cancel_ = true;
  cancel_ = nullptr;
  emit busyChanged();
}

void LayoutWorker::start(LayoutRequest request) {
  if (cancel_) *cancel_ = true;
  const auto token = std::make_shared<std::atomic<bool>>(false);
  cancel_ = token;
  emit busyChanged();
  pool_.start([this, token, request = std::move(request)] {
    const auto model = request.model || *token ? request.model : GraphModel::make(request.snapshot, *token);
    std::shared_ptr<const GraphScene> scene;
    OpenGroups open;
    if (model && !*token) {
      open = request.chooseOpen ? defaultOpen(*model) : request.open;
      if (const int node = request.reveal < 0 ? -1 : model->ofNodeId(request.reveal); node >= 0)
        open.merge(groupsAround(*model, node));
      scene = layoutGraph(model, open, request.previous ? seedsOf(*request.previous) : NodeSeeds(), *token);
    }
    // The destructor waits for this thread, so `this` is alive; a cancelled request is dropped on arrival.
    QMetaObject::invokeMethod(
        this, [this, token, scene, open] { done(token, scene, open); }, Qt::QueuedConnection);
  });
}

void LayoutWorker::done(const std::shared_ptr<std::atomic<bool>>& token, const std::shared_ptr<const GraphScene>& scene,
                        const OpenGroups& open) {
  if (token != cancel_ || *token || !scene) return;
  cancel_ = nullptr;
  emit busyChanged();
  emit finished(scene, open);
}

}  // namespace stepscope
