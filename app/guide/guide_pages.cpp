// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/guide/guide_pages.h"

#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <algorithm>

// A resource of a static library has to be asked for, outside of every namespace.
static void takeGuideIn() { Q_INIT_RESOURCE(guide); }

namespace stepscope {
namespace {

const QString kRoot = QStringLiteral(":/guide/");

QString withoutMarks(QString line) {
  static const QRegularExpression kPicture(QStringLiteral("!\\[[^\\]]*\\]\\([^)]*\\)"));
  static const QRegularExpression kLink(QStringLiteral("\\[([^\\]]*)\\]\\([^)]*\\)"));
  static const QRegularExpression kMark(QStringLiteral("[*`]+|^#+ |^[-] |^\\d+\\. |^> "));
  line.remove(kPicture);
  line.replace(kLink, QStringLiteral("\\1"));
  return line.remove(kMark).trimmed();
}

GuidePage read(const QString& id) {
  GuidePage page{id, id, {}, {}, {}};
  QFile file(kRoot + id + QStringLiteral(".md"));
  if (!file.open(QIODevice::ReadOnly)) return page;
  page.markdown = QString::fromUtf8(file.readAll());
  QStringList plain;
  bool titled = false;
  for (const QString& line : page.markdown.split('\n')) {
    const QString text = withoutMarks(line.trimmed());
    if (line.startsWith('#') && !titled) {
      page.title = text;
      titled = true;
    } else {
      if (line.startsWith('#')) page.headings << text;
      if (!text.isEmpty()) plain << text;
    }
  }
  page.plain = plain.join('\n');
  return page;
}

// Of a path as a page writes it: from the top of the guide, or empty where it leads out of it.
QString fromTop(const QString& fromPage, const QString& path) {
  const QString whole = QDir::cleanPath(fromPage.section('/', 0, -2) + '/' + path);
  const QString relative = whole.startsWith('/') ? whole.mid(1) : whole;
  return relative.startsWith(QStringLiteral("..")) ? QString() : relative;
}

}  // namespace

const std::vector<GuidePage>& guidePages() {
  static const std::vector<GuidePage> kPages = [] {
    takeGuideIn();
    std::vector<GuidePage> pages;
    QDirIterator files(kRoot, {QStringLiteral("*.md")}, QDir::Files, QDirIterator::Subdirectories);
    while (files.hasNext()) pages.push_back(read(files.next().mid(kRoot.size()).chopped(3)));
    std::sort(pages.begin(), pages.end(), [](const GuidePage& a, const GuidePage& b) { return a.id < b.id; });
    return pages;
  }();
  return kPages;
}

const GuidePage* guidePage(const QString& id) {
  for (const GuidePage& page : guidePages())
    if (page.id == id) return &page;
  return nullptr;
}

QString guidePageOfView(const QString& viewId) {
  const QString id = QStringLiteral("views/") + viewId;
  return guidePage(id) ? id : QString();
}

GuideLink guideLink(const QString& fromPage, const QString& href) {
  if (href.startsWith(u"sample:")) return {GuideLink::kSample, href.mid(7)};
  if (href.startsWith(u"do:")) return {GuideLink::kAction, href.mid(3)};
  if (!href.endsWith(u".md")) return {};
  const QString id = fromTop(fromPage, href.chopped(3));
  return guidePage(id) ? GuideLink{GuideLink::kPage, id} : GuideLink{};
}

QString guidePicture(const QString& fromPage, const QString& path, bool dark) {
  QString name = fromTop(fromPage, path);
  if (dark) name.replace(QStringLiteral("pictures/light/"), QStringLiteral("pictures/dark/"));
  takeGuideIn();
  return !name.isEmpty() && QFile::exists(kRoot + name) ? kRoot + name : QString();
}

}  // namespace stepscope
