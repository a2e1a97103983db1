// SPDX-License-Identifier: GPL-3.0-or-later
// Which stream of a device every node runs on, and what waits for what. Nodes are dragged from row to row; times, waits and
// the longest chain follow at once. Apply sets the option streams.partition.
#pragma once

#include <QLabel>
#include <QPushButton>

#include "views/common/view.h"
#include "views/streams/streams_canvas.h"

namespace stepscope {

class StreamsView : public View {
  Q_OBJECT

 public:
  explicit StreamsView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QString emptyText() const override;
  void fitAll() override { canvas_->fit(); }
  void drawPicture(QPainter& painter) override { canvas_->paintOn(painter); }

  StreamsCanvas& canvas() { return *canvas_; }
  // The value of option streams.partition for what stands here.
  QString partitionText() const;

 private:
  void takePlan();   // another plan: what was moved in the one before is gone
  void takeTimes();  // of a newer step
  void show();       // computes and paints
  void showButtons();
  void moveNode(int instruction, int stream);
  QString applied() const;  // the option's value
  bool hasStreams() const;

  StreamsCanvas* canvas_;
  QLabel *summary_, *proof_;
  QPushButton *apply_, *reset_, *automatic_, *try_, *save_, *load_;
  std::vector<int> streams_;  // by instruction, as they stand here
  std::vector<std::int64_t> ns_;
  QString basis_;               // of the times
  std::int64_t plannedNs_ = 0;  // as the plan has it, by the same times
  int moves_ = 0;               // nodes that stand elsewhere than in the plan
};

}  // namespace stepscope
