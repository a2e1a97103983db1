// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/source/path_map.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

namespace stepscope {
namespace {

constexpr int kMostEntries = 100;
constexpr qsizetype kLongestName = 4096;

QString slashed(QString name) { return name.replace('\\', '/'); }

// "a/b/" and "a/b" are the same prefix.
QString trimmed(QString prefix) {
  prefix = slashed(std::move(prefix));
  while (prefix.size() > 1 && prefix.endsWith('/')) prefix.chop(1);
  return prefix;
}

bool isAbsolute(const QString& name) { return name.startsWith('/') || (name.size() > 2 && name[1] == ':'); }

}  // namespace

void PathMap::add(Entry entry) {
  entry = {trimmed(entry.prefix), trimmed(QDir::cleanPath(entry.folder))};
  std::erase_if(entries_, [&](const Entry& e) { return e.prefix == entry.prefix; });
  if (entries_.size() < kMostEntries) entries_.push_back(std::move(entry));
}

void PathMap::set(std::vector<Entry> entries) {
  entries_.clear();
  for (Entry& entry : entries) add(std::move(entry));
}

QString PathMap::resolve(const QString& recorded) const {
  const QString name = slashed(recorded);
  const QStringList parts = name.split('/');
  if (name.isEmpty() || name.size() > kLongestName || parts.contains(QStringLiteral(".."))) return {};
  const Entry* best = nullptr;
  for (const Entry& e : entries_) {
    const bool fits = e.prefix.isEmpty() ? !isAbsolute(name) : name.startsWith(e.prefix == u"/" ? e.prefix : e.prefix + '/');
    if (fits && isAbsolute(e.folder) && (!best || e.prefix.size() > best->prefix.size())) best = &e;
  }
  if (!best) return {};
  const QString rest = name.mid(best->prefix.isEmpty() ? 0 : best->prefix == u"/" ? 1 : best->prefix.size() + 1);
  const QString path = QDir::cleanPath(best->folder + '/' + rest);
  return path.startsWith(best->folder == u"/" ? best->folder : best->folder + '/') ? path : QString();
}

PathMap::Entry PathMap::learn(const QString& recorded, const QString& chosen) {
  QStringList from = slashed(recorded).split('/'), to = QDir::cleanPath(chosen).split('/');
  // The file itself is left out always: the user said that it is the same one.
  do {
    from.removeLast();
    to.removeLast();
  } while (from.size() > (isAbsolute(slashed(recorded)) ? 1 : 0) && to.size() > 1 && from.last() == to.last());
  const QString prefix = from.join('/'), folder = to.join('/');
  return {isAbsolute(slashed(recorded)) && prefix.isEmpty() ? QStringLiteral("/") : prefix,
          folder.isEmpty() ? QStringLiteral("/") : folder};
}

QString PathMap::text() const {
  QJsonArray array;
  for (const Entry& e : entries_)
    array << QJsonObject{{QStringLiteral("prefix"), e.prefix}, {QStringLiteral("folder"), e.folder}};
  return QString::fromUtf8(QJsonDocument(array).toJson(QJsonDocument::Compact));
}

PathMap PathMap::fromText(const QString& text) {
  PathMap map;
  for (const QJsonValue& value : QJsonDocument::fromJson(text.toUtf8()).array()) {
    const QJsonObject object = value.toObject();
    if (object[QStringLiteral("folder")].isString())
      map.add({object[QStringLiteral("prefix")].toString(), object[QStringLiteral("folder")].toString()});
  }
  return map;
}

}  // namespace stepscope
