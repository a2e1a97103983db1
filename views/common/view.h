// SPDX-License-Identifier: GPL-3.0-or-later
// The base of every view. A view is one folder with a class derived from View, a make function, and one line in
// app/workbench/view_list.cpp.
#pragma once

#include <QString>
#include <QWidget>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"
#include "views/common/wishes.h"

class QPainter;

namespace stepscope {

// What every view is made from. The three outlive all views. The store is the workbench's to write.
struct ViewContext {
  const SnapshotStore& store;
  SelectionModel& selection;
  Wishes& wishes;
};

class View : public QWidget {
  Q_OBJECT

 public:
  // `id` is the object name and the name in layout files ("instructions"); `title` stands on the tab.
  View(const ViewContext& context, const QString& id, const QString& title, QWidget* parent = nullptr);

  const QString& title() const { return title_; }
  // Short text at the right end of the panel's header ("1,284"); emit headerChanged when it changes.
  virtual QString headerText() const { return {}; }
  // Controls at the right end of the header, owned by the view; nullptr when there are none.
  virtual QWidget* headerWidget() { return nullptr; }

  // Empty while there is something to show; otherwise what would fill the view and how. Emit emptyChanged when it changes:
  // the frame shows the text instead of the view.
  virtual QString emptyText() const { return {}; }
  // The same, but of a model without a plan: that it is being built, or has yet to be.
  QString shownEmptyText() const;

  // Keys that mean the same in every view.
  virtual void find() {}            // Ctrl+F: find in view
  virtual void focusSelection() {}  // F
  virtual void fitAll() {}          // Space, or F twice
  virtual void enterGroup() {}      // F11
  virtual void leaveGroup() {}      // Shift+F11

  // Draws the view into `painter`, width() × height() units; the default renders the widget. Views that draw vectors
  // override it so that SVG and PDF are sharp.
  virtual void drawPicture(QPainter& painter);

  // State worth remembering over sessions, as small text; both do nothing by default.
  virtual QString saveState() const { return {}; }
  virtual void restoreState(const QString&) {}

 signals:
  void headerChanged();
  void emptyChanged();
  void titleChanged();

 protected:
  void setTitle(const QString& title);
  const SnapshotStore& store() const { return context_.store; }
  SelectionModel& selection() const { return context_.selection; }
  Wishes& wishes() const { return context_.wishes; }
  const ViewContext& context() const { return context_; }

 private:
  ViewContext context_;
  QString title_;
};

}  // namespace stepscope
