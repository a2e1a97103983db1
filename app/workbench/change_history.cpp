// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/change_history.h"

#include <QTimer>
#include <algorithm>
#include <tuple>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/status_line.h"

namespace stepscope {
namespace {

class OptionChange : public QUndoCommand {
 public:
  OptionChange(ModelSession& session, OptionSettings from, OptionSettings to)
      : session_(session), from_(std::move(from)), to_(std::move(to)) {
    QStringList text;
    for (const auto& [name, value] : to_) text << QStringLiteral("%1 = %2").arg(name, value);
    setText(text.join(QStringLiteral(", ")));
  }
  void redo() override { session_.setOptions(to_); }
  void undo() override { session_.setOptions(from_); }
  // Nothing else than these, which are not so.
  bool isOf(const OptionSettings& refused) const {
    return std::ranges::all_of(to_, [&refused](const auto& s) { return std::ranges::find(refused, s) != refused.end(); });
  }

 private:
  ModelSession& session_;
  OptionSettings from_, to_;
};

// From one arrangement of the views to another; the window shows the second one already.
class ArrangementChange : public QUndoCommand {
 public:
  ArrangementChange(ChangeHistory::Arrange arrange, ViewLayout from, ViewLayout to)
      : QUndoCommand(QStringLiteral("views")), arrange_(std::move(arrange)), from_(std::move(from)), to_(std::move(to)) {}
  void redo() override {
    if (std::exchange(shown_, false)) return;
    arrange_(to_);
  }
  void undo() override { arrange_(from_); }

 private:
  ChangeHistory::Arrange arrange_;
  ViewLayout from_, to_;
  bool shown_ = true;
};

// An element that was edited. It is taken back where it was made: what runs since may have read or computed it again.
class ElementChange : public QUndoCommand {
 public:
  ElementChange(ModelSession& session, const SnapshotStore& store, ElementEdit edit,
                std::function<void(const QString&)> tell)
      : session_(session), store_(store), edit_(std::move(edit)), place_(placeOf(store)), tell_(std::move(tell)) {
    setText(QStringLiteral("element"));
  }
  void redo() override {
    if (std::exchange(made_, false)) return;
    set(edit_.after, edit_.before);
  }
  void undo() override { set(edit_.before, edit_.after); }

 private:
  static std::tuple<bool, std::int64_t, int> placeOf(const SnapshotStore& store) {
    const auto& p = store.position();
    return {p.in_step(), p.step(), p.instruction()};
  }
  void set(double number, double from) {
    if (placeOf(store_) == place_) return session_.editElement(edit_.value, edit_.index, number, from, false);
    tell_(QStringLiteral("The step went on since the element was edited; go back to where it was to take it back"));
    setObsolete(true);
  }

  ModelSession& session_;
  const SnapshotStore& store_;
  ElementEdit edit_;
  std::tuple<bool, std::int64_t, int> place_;
  std::function<void(const QString&)> tell_;
  bool made_ = true;
};

}  // namespace

ChangeHistory::ChangeHistory(const WindowParts& parts, Arrange arrange)
    : store_(parts.store), session_(parts.session), arrange_(std::move(arrange)) {
  QAction* undo = parts.actions[QStringLiteral("undo")];
  QAction* redo = parts.actions[QStringLiteral("redo")];
  connect(undo, &QAction::triggered, &undo_, &QUndoStack::undo);
  connect(redo, &QAction::triggered, &undo_, &QUndoStack::redo);
  connect(&undo_, &QUndoStack::canUndoChanged, undo, &QAction::setEnabled);
  connect(&undo_, &QUndoStack::canRedoChanged, redo, &QAction::setEnabled);
  undo->setEnabled(false);
  redo->setEnabled(false);
  connect(&session_, &ModelSession::elementEdited, this, [this, status = &parts.status](const ElementEdit& edit) {
    undo_.push(new ElementChange(session_, store_, edit, [status](const QString& text) { status->note(text); }));
  });
  connect(&session_, &ModelSession::optionsRefused, this, &ChangeHistory::dropRefused);
  connect(&session_, &ModelSession::builtChanged, this, [this] {
    if (!session_.built()) undo_.clear();  // options of another model
  });
}

void ChangeHistory::rearranged(const ViewLayout& from, const ViewLayout& to) {
  if (from != to) undo_.push(new ArrangementChange(arrange_, from, to));
}

void ChangeHistory::setOption(const QString& name, const QString& value) {
  if (wanted_.empty()) QTimer::singleShot(0, this, &ChangeHistory::pushOptions);
  wanted_.emplace_back(name, value);
}

// The newest change was not made: there is nothing to take back. One that was undone in vain stays undone.
void ChangeHistory::dropRefused(const OptionSettings& refused) {
  const int newest = undo_.index() - 1;
  // A stack gives its commands to be looked at; this one belongs to us.
  auto* change = dynamic_cast<OptionChange*>(const_cast<QUndoCommand*>(newest < 0 ? nullptr : undo_.command(newest)));
  if (!change || !change->isOf(refused)) return;
  change->setObsolete(true);
  undo_.undo();  // takes an obsolete one off, and calls nothing
}

void ChangeHistory::pushOptions() {
  OptionSettings from, to;
  for (const auto& [name, value] : std::exchange(wanted_, {}))
    for (const auto& option : store_.options()) {
      if (QString::fromStdString(option.name()) != name || QString::fromStdString(option.value()) == value) continue;
      if (name == u"memory.limit") askedLimit_ = value;
      from.emplace_back(name, QString::fromStdString(option.value()));
      to.emplace_back(name, value);
    }
  if (!to.empty()) undo_.push(new OptionChange(session_, std::move(from), std::move(to)));
}

}  // namespace stepscope
