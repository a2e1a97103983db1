// SPDX-License-Identifier: GPL-3.0-or-later
// One selection and one current instruction drive every view. Views read them, set them, and follow their signals; no view
// knows another. GUI thread only.
//
// A selection may name several things at once; whoever sets it fills in what it knows, and the workbench completes the rest
// from the snapshots (node of an instruction, buffer of a value …) before the signal goes out. It may also mean several
// nodes: all of a source line, of a module, of an operator. Then `node` is the current one among them, and the views mark
// the others too.
#pragma once

#include <QObject>
#include <QString>
#include <functional>
#include <memory>
#include <vector>

namespace stepscope {

// Nodes that are selected together.
class NodeGroup {
 public:
  // `name` says what they are, hostile text: "model.py:41", "transformer.h.0". Nothing for fewer than two nodes.
  static std::shared_ptr<const NodeGroup> make(QString name, std::vector<int> nodes);
  const QString& name() const { return name_; }
  const std::vector<int>& nodes() const { return nodes_; }  // ids, ascending
  bool contains(int node) const;
  bool operator==(const NodeGroup&) const = default;

 private:
  QString name_;
  std::vector<int> nodes_;
};

struct Selection {
  int node = -1;                           // node id
  int value = -1;                          // value id
  int instruction = -1;                    // position in the plan
  int buffer = -1;                         // index into Plan.buffers
  QString file;                            // source place, hostile text
  int line = 0;                            // 1-based; 0 none
  std::shared_ptr<const NodeGroup> group;  // that `node` stands for; null: it stands alone

  bool empty() const { return node < 0 && value < 0 && instruction < 0 && buffer < 0 && file.isEmpty(); }
  bool holds(int nodeId) const { return nodeId >= 0 && (nodeId == node || (group && group->contains(nodeId))); }
  bool operator==(const Selection& other) const;

  static Selection ofNode(int id) {
    Selection s;
    s.node = id;
    return s;
  }
  static Selection ofValue(int id) {
    Selection s;
    s.value = id;
    return s;
  }
  static Selection ofInstruction(int index) {
    Selection s;
    s.instruction = index;
    return s;
  }
  static Selection ofBuffer(int index) {
    Selection s;
    s.buffer = index;
    return s;
  }
};

class SelectionModel : public QObject {
  Q_OBJECT

 public:
  explicit SelectionModel(QObject* parent = nullptr);

  const Selection& selection() const { return selection_; }
  // The next instruction to run; -1 outside a step.
  int currentInstruction() const { return current_; }
  // Range of time that flame graph and tables follow, nanoseconds of the worker's clock; empty when begin == end.
  std::int64_t rangeBegin() const { return rangeBegin_; }
  std::int64_t rangeEnd() const { return rangeEnd_; }

  // Completes what a view did not know; set once by the workbench.
  void setCompleter(std::function<Selection(Selection)> completer) { completer_ = std::move(completer); }

  // Selects and remembers it in the history. Selecting the same thing again does nothing.
  void select(const Selection& selection);
  void clear() { select({}); }
  void setCurrentInstruction(int index);
  void setRange(std::int64_t beginNs, std::int64_t endNs);

  bool canGoBack() const { return place_ > 0; }
  bool canGoForward() const { return place_ + 1 < static_cast<int>(history_.size()); }
  void goBack();
  void goForward();
  // Forgets the history: the ids belong to another build.
  void reset();

 signals:
  void selectionChanged(const stepscope::Selection& selection);
  void currentInstructionChanged(int index);
  void rangeChanged(qint64 beginNs, qint64 endNs);
  void historyChanged();

 private:
  void apply(const Selection& selection);

  Selection selection_;
  int current_ = -1;
  std::int64_t rangeBegin_ = 0;
  std::int64_t rangeEnd_ = 0;
  std::function<Selection(Selection)> completer_;
  std::vector<Selection> history_;
  int place_ = -1;
};

}  // namespace stepscope
