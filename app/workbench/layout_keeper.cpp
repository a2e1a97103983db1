// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/layout_keeper.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/change_history.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/status_line.h"
#include "app/workbench/toolbar.h"
#include "app/workbench/view_list.h"
#include "app/workbench/window_settings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

const QString kSaved = QStringLiteral("layouts"), kPresent = QStringLiteral("present");
constexpr qsizetype kLongestName = 40;

// It has a name, and a view that there is.
bool isSound(const ViewLayout& layout) {
  const auto& all = viewList();
  const auto known = [&all](const QString& id) {
    return std::any_of(all.begin(), all.end(), [&id](const ViewEntry& entry) { return id == QLatin1String(entry.id); });
  };
  return !layout.name.isEmpty() && std::any_of(layout.views.begin(), layout.views.end(), [&known](const QStringList& ids) {
    return std::any_of(ids.begin(), ids.end(), known);
  });
}

void refuse(const SettingsReader& settings, const QString& key, const ViewLayout& layout) {
  settings.refuse(key, QStringLiteral("a layout '%1' without a view").arg(format::visible(layout.name)),
                  QStringLiteral("a name and views"));
}

}  // namespace

LayoutKeeper::LayoutKeeper(const WindowParts& parts, Toolbar& toolbar, WindowSettings& settings, ChangeHistory& history)
    : parts_(parts), toolbar_(toolbar), settings_(settings), history_(history) {
  connect(&parts_.board, &PanelBoard::rearranged, this, [this](const ViewLayout& before) {
    ViewLayout from = before;
    from.name = name_;
    history_.rearranged(from, present());
  });
  // The keys of the window work in those of its views too.
  connect(&parts_.board, &PanelBoard::tornOut, this, [this](QWidget* window) { window->addActions(parts_.actions.all()); });
  connect(parts_.actions[QStringLiteral("tear_out")], &QAction::triggered, this, [this] {
    if (const View* view = parts_.board.activeView()) parts_.board.tearOut(view->objectName());
  });
  connect(parts_.actions[QStringLiteral("layout_reset")], &QAction::triggered, this,
          [this] { change(names().contains(name_) ? name_ : names().first()); });
  connect(parts_.actions[QStringLiteral("layout_delete")], &QAction::triggered, this, &LayoutKeeper::forget);
  connect(parts_.actions[QStringLiteral("layout_save")], &QAction::triggered, this, [this] {
    askText(&parts_.window, QStringLiteral("Save layout"), QStringLiteral("Name of the layout:"), name_, {},
            [this](const QString& name) { keepAs(name.left(kLongestName)); });
  });
}

QStringList LayoutKeeper::names() const {
  QStringList names;
  for (const ViewLayout& l : shippedLayouts()) names << l.name;
  for (const ViewLayout& l : saved_) {
    if (!names.contains(l.name)) names << l.name;
  }
  return names;
}

bool LayoutKeeper::isSaved() const {
  return std::any_of(saved_.begin(), saved_.end(), [this](const ViewLayout& l) { return l.name == name_; });
}

ViewLayout LayoutKeeper::present() const { return parts_.board.present(name_); }

void LayoutKeeper::arrange(const ViewLayout& layout) {
  name_ = layout.name;
  parts_.board.apply(layout);
  toolbar_.setLayoutName(layout.name);
  emit arranged();
}

void LayoutKeeper::apply(const QString& name) {
  for (const std::vector<ViewLayout>* layouts : {&std::as_const(saved_), &shippedLayouts()}) {
    for (const ViewLayout& l : *layouts)
      if (l.name.compare(name, Qt::CaseInsensitive) == 0) return arrange(ViewLayout(l));
  }
  parts_.notice.showProblem(
      QStringLiteral("layout '%1': unknown; expected one of %2").arg(name, names().join(QStringLiteral(", "))), {}, {});
}

void LayoutKeeper::change(const QString& name) {
  const ViewLayout before = present();
  apply(name);
  history_.rearranged(before, present());
}

void LayoutKeeper::keepAs(const QString& name) {
  std::erase_if(saved_, [&name](const ViewLayout& l) { return l.name == name; });
  saved_.push_back(parts_.board.present(name));
  apply(name);
  emit savedChanged();
}

void LayoutKeeper::forget() {
  std::erase_if(saved_, [this](const ViewLayout& l) { return l.name == name_; });
  parts_.status.note(QStringLiteral("Deleted the layout %1").arg(name_));
  change(names().contains(name_) ? name_ : QStringLiteral("Step"));
  emit savedChanged();
}

void LayoutKeeper::remember() const {
  settings_.set(QStringLiteral("layout"), name_);
  QJsonArray saved;
  for (const ViewLayout& l : saved_) saved << l.toJson();
  settings_.set(kSaved, QJsonDocument(saved).toJson(QJsonDocument::Compact));
  settings_.set(kPresent, QJsonDocument(present().toJson()).toJson(QJsonDocument::Compact));
}

void LayoutKeeper::restore() {
  if (!settings_.remember()) return;
  const SettingsReader settings = settings_.read();
  for (const QJsonValue& value : settings.json(kSaved).array()) {
    const ViewLayout layout = ViewLayout::fromJson(value.toObject());
    if (isSound(layout))
      saved_.push_back(layout);
    else
      refuse(settings, kSaved, layout);
  }
  const QJsonDocument last = settings.json(kPresent);
  if (last.isNull()) return;
  const ViewLayout layout = ViewLayout::fromJson(last.object());
  if (isSound(layout))
    arrange(layout);
  else
    refuse(settings, kPresent, layout);
}

}  // namespace stepscope
