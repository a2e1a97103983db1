// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/sample_list.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

namespace stepscope {
namespace {

struct Known {
  const char* name;
  const char* detail;
};

// In the order in which they are offered.
const Known kKnown[] = {
    {"language_model", "A small transformer on sonnets"},
    {"digits", "Handwritten digits, a small convolutional network"},
    {"nan", "The digits with one pixel that is NaN, in step 40"},
    {"padding", "Sentences padded to one length, labels left out where they are"},
    {"too_large", "A network for a memory.limit that its step does not fit into"},
    {"two_runs", "A recorded project: two runs that part"},
};

QString contentsOf(const QDir& folder) {
  for (const char* pattern : {"*.onnx", "*.stepscope"}) {
    const QStringList files = folder.entryList({QLatin1String(pattern)}, QDir::Files, QDir::Name);
    if (!files.isEmpty()) return QDir::cleanPath(folder.filePath(files.first()));
  }
  return {};
}

}  // namespace

QString samplePath(const QString& name) {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* place : {"../../../app/samples", "../../app/samples", "../share/stepscope/samples"}) {
    const QDir folder(here.filePath(QLatin1String(place) + '/' + name));
    if (const QString path = folder.exists() ? contentsOf(folder) : QString(); !path.isEmpty()) return path;
  }
  return {};
}

std::vector<Sample> samples() {
  std::vector<Sample> found;
  for (const Known& known : kKnown) {
    const QString name = QLatin1String(known.name), path = samplePath(name);
    if (!path.isEmpty()) found.push_back({name, path, QString::fromUtf8(known.detail)});
  }
  return found;
}

}  // namespace stepscope
