// SPDX-License-Identifier: GPL-3.0-or-later
// Where a window stands, in a file next to the others: what a window that did not end as it should is brought back from.
#pragma once

#include <QByteArray>
#include <QLockFile>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

namespace stepscope {

// A value that was set by hand at the place's step.
struct PlaceEdit {
  int instruction = -1;               // before it; -1: before the step, and the state holds it
  QByteArray request;                 // snapshot::Request
  QString value;                      // its name: another build may give it another number
  std::optional<double> before = {};  // of an element

  bool operator==(const PlaceEdit&) const = default;
};

struct SessionPlace {
  QString path;              // of the model, or of the project that is looked at
  QByteArray configuration;  // snapshot::Configure; empty for a project
  QByteArray breakpoints;    // snapshot::BreakpointList
  qint64 step = 0;
  int instruction = -1;  // -1: between steps
  int selectedInstruction = -1, selectedValue = -1;
  QByteArray layout;                  // Layout::toJson
  bool edited = false;                // values were set by hand
  QString state;                      // file with the training state before `step`; empty: its steps are run again
  qint64 run = 0;                     // of the project, that trained there; 0: not known
  std::vector<PlaceEdit> edits = {};  // in the order they were made

  bool operator==(const SessionPlace&) const = default;
};

// It came from a file within the step, and the file is not kept.
bool isDropped(const PlaceEdit& edit);

QByteArray jsonOf(const SessionPlace& place);
// `problem`: what was found where a place was expected.
std::optional<SessionPlace> readPlace(const QString& path, QString* problem);

class SessionMark {
 public:
  explicit SessionMark(const QString& folder);
  ~SessionMark() { drop(); }

  // Replaces what was kept. What cannot be written is not kept.
  void keep(const SessionPlace& place);
  void drop();
  // The newest place that nobody dropped and whose window is gone; forgets it and the older ones. `path`: of this file
  // alone; empty: of any. `problem`: what was found where a place was expected.
  std::optional<SessionPlace> takeLost(QString* problem = nullptr, const QString& path = {});

 private:
  QString folder_, file_;
  SessionPlace kept_;
  std::unique_ptr<QLockFile> lock_;  // held as long as something is kept
};

}  // namespace stepscope
