// SPDX-License-Identifier: GPL-3.0-or-later
// Runs models and layouts on a thread of its own. A newer request cancels the older one; only the newest result is reported.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <memory>

#include "views/graph/layout.h"

namespace stepscope {

struct LayoutRequest {
  std::shared_ptr<const GraphSnapshot> snapshot;
  std::shared_ptr<const GraphModel> model;  // nullptr: made from the snapshot first
  OpenGroups open;
  bool chooseOpen = false;                     // ignore `open`, take defaultOpen()
  int reveal = -1;                             // id of a node whose groups are opened as well
  std::shared_ptr<const GraphScene> previous;  // keeps the places of its nodes; may be nullptr
};

class LayoutWorker : public QObject {
  Q_OBJECT

 public:
  explicit LayoutWorker(QObject* parent = nullptr);
  ~LayoutWorker() override;

  void start(LayoutRequest request);
  void cancel();
  bool busy() const { return cancel_ != nullptr; }

 signals:
  void finished(std::shared_ptr<const stepscope::GraphScene> scene, stepscope::OpenGroups open);
  void busyChanged();

 private:
  void done(const std::shared_ptr<std::atomic<bool>>& token, const std::shared_ptr<const GraphScene>& scene,
            const OpenGroups& open);

  QThreadPool pool_;
  std::shared_ptr<std::atomic<bool>> cancel_;  // of the running request
};

}  // namespace stepscope
