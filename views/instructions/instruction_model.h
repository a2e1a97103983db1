// SPDX-License-Identifier: GPL-3.0-or-later
// The plan as a flat list: a separator per phase, then its instructions. With a filter only what matches; where lines are
// left out between two matches stands one quiet line that says how many.
//
// One column. DisplayRole is the whole line as text (also what is copied); the delegate paints from the other roles.
#pragma once

#include <QAbstractListModel>
#include <QSet>
#include <vector>

#include "views/common/snapshot_store.h"
#include "views/instructions/instruction_filter.h"

namespace stepscope {

class InstructionModel : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Kind { kInstruction, kPhase, kGap };
  enum Role { kKindRole = Qt::UserRole, kIndexRole };

  // What the delegate paints.
  struct Line {
    Kind kind = kInstruction;
    int index = -1;     // instruction, or the first of the phase
    int hidden = 0;     // kGap: instructions left out
    QString op, place;  // kPhase: the title is in op, what it holds in place
    QString category;
    QString time, bytes;
    bool fresh = false;  // ran in this step, or no step is begun
    bool left = false;   // passed by without running; `time` says so
    bool breakpoint = false, breakpointOff = false;
  };

  explicit InstructionModel(const SnapshotStore& store, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  Line line(int row) const;
  void setFilter(const InstructionFilter& filter);
  int matching() const { return matching_; }
  int nodeOf(int instruction) const;  // -1 when there is none
  int rowOf(int instruction) const;   // -1 when it is filtered out

 private:
  struct Row {
    Kind kind;
    int index;
    int hidden;
  };

  void rebuild();
  void refreshBreakpoints();
  InstructionFacts facts(int index) const;
  QString tooltip(int index) const;

  const SnapshotStore& store_;
  GraphPtr graph_;
  PlanPtr plan_;
  InstructionFilter filter_;
  std::vector<Row> rows_;
  QSet<int> breakpoints_, breakpointsOff_;
  int matching_ = 0;
};

}  // namespace stepscope
