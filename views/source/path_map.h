// SPDX-License-Identifier: GPL-3.0-or-later
// Where the files that a model names lie on this machine: recorded prefix → local folder. A recorded name is hostile text:
// it leads nowhere but below a folder that the user chose.
#pragma once

#include <QString>
#include <vector>

namespace stepscope {

class PathMap {
 public:
  struct Entry {
    QString prefix;  // of recorded names, whole path components; empty: every relative name
    QString folder;  // absolute
    bool operator==(const Entry&) const = default;
  };

  const std::vector<Entry>& entries() const { return entries_; }
  // An entry of the same prefix is replaced.
  void add(Entry entry);
  void set(std::vector<Entry> entries);
  // The local path by the entry of the longest prefix; empty when none fits, or when the name climbs ("..") out of it.
  QString resolve(const QString& recorded) const;

  // The entry that leads from a recorded name to the file which the user chose for it: what both end with is left out.
  static Entry learn(const QString& recorded, const QString& chosen);

  // As JSON; what is no map gives an empty one.
  QString text() const;
  static PathMap fromText(const QString& text);

  bool operator==(const PathMap&) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace stepscope
