// SPDX-License-Identifier: GPL-3.0-or-later
// The panels around the central area. Applies a layout, tells the present one, moves views between areas.
#pragma once

#include <QHash>
#include <QWidget>
#include <array>
#include <functional>

#include "app/workbench/floating_panels.h"
#include "app/workbench/panel_group.h"
#include "app/workbench/panel_splits.h"

namespace stepscope {

class PanelBoard : public QWidget {
  Q_OBJECT

 public:
  // `make` creates the view with an id, or returns nullptr for one that does not exist (a layout of another version).
  PanelBoard(std::function<View*(const QString&)> make, QWidget* parent = nullptr);
  ~PanelBoard() override;

  // The views in front are there at once; those behind them are made one per turn of the event loop.
  void apply(const ViewLayout& layout);
  ViewLayout present(const QString& name) const;

  // Brings a view to the front, adding it to the area where it belongs by default when it is nowhere.
  View* show(const QString& id);
  // Gives the keyboard to the view, or to the text that stands in its place while it is empty: not to the first button of
  // the window.
  void focus(const View& view);
  View* find(const QString& id) const;   // nullptr when it was never made
  View* front(const QString& id) const;  // nullptr unless it can be seen: in front of its group, on a board that is shown
  bool isInLayout(const QString& id) const { return groupOf(id) || awaited_.contains(id); }
  void move(const QString& id, Area area);
  // Into a window of its own; closed, it comes back to where it was.
  void tearOut(const QString& id);
  void close(const QString& id);

  // The view that has the focus, or the one that had it last.
  View* activeView() const;

 signals:
  void changed();
  void activeViewChanged();
  void helpWanted(const QString& id);  // of a view
  void tornOut(QWidget* window);       // a view has a window of its own
  // The user moved or closed a view; `before` is the arrangement it was taken from.
  void rearranged(const stepscope::ViewLayout& before);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  PanelGroup* group(Area area) const { return groups_[static_cast<std::size_t>(area)]; }
  PanelGroup* groupOf(const QString& id) const;
  ViewFrame* takeFrame(const QString& id);
  ViewFrame* frame(const QString& id);
  void place(const QString& id, std::size_t area);
  void choose(const QString& id);
  void placeAwaited();
  void hideEmptyGroups();
  void openTabMenu(const QString& id, const QPoint& globalPos);

  std::function<View*(const QString&)> make_;
  QHash<QString, ViewFrame*> frames_;
  std::array<PanelGroup*, kAreaCount> groups_;
  FloatingPanels floating_{this};
  PanelSplits* splits_;
  ViewLayout layout_;    // that was applied last
  QStringList awaited_;  // views of `layout_` that are not made yet
  QString active_;
};

}  // namespace stepscope
