// SPDX-License-Identifier: GPL-3.0-or-later
// Values that are set by hand: asked for, remembered for a worker that comes after, told of in the step.
#pragma once

#include <QThreadPool>
#include <optional>
#include <vector>

#include "app/workbench/scratch_folder.h"
#include "app/workbench/session/session_link.h"

namespace stepscope {

struct ElementEdit {
  int value = -1;
  std::vector<qint64> index;
  double before = 0, after = 0;
};

class SessionEdits : public SessionPart {
  Q_OBJECT

 public:
  struct Edit {
    std::int64_t step = 0;
    int instruction = -1;  // -1: between steps
    snapshot::Request request;
    std::optional<double> before = {};  // of an element
  };

  explicit SessionEdits(const SessionParts& parts) : SessionPart(parts) {}

  std::vector<Edit> ofStep(std::int64_t step) const;
  void takeOver(const std::vector<Edit>& edits);           // of a session before this one
  const std::vector<Edit>& all() const { return edits_; }  // in the order they were made

  void editTensor(int value, const std::vector<qint64>& index, double number, bool fill);
  // How it ended stands in the findings. An edit that is to be taken back later is told by elementEdited().
  void editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable);
  void loadTensor(int value, const QString& path);  // a .npy file of the worker's machine

  // Edits of the step that goes on under another plan get the ids that their values have there.
  void moveEdits(const GraphPtr& before);
  void tellOfHand(std::int64_t step);  // what was done by hand in a step that is recorded: its edits and stops, as alerts
  void takenBack(const snapshot::Position& position);  // within the step
  void stepAbandoned(std::int64_t step);
  void rewound(std::int64_t step);
  void leave();

 private:
  // And remembers it, for a worker that has to come back. `before`: of an element.
  void edit(snapshot::Request request, std::optional<double> before = {}, Then then = {}, SessionLink::Refused refused = {});
  void copied(int value, const QString& path, const QString& copy, const QString& why);
  static bool takesBack(const Edit& later, const Edit& earlier);  // an element is again what it was
  std::vector<const Edit*> standing() const;                      // without those that were taken back
  void tell();                                                    // the views, which values they are

  std::vector<Edit> edits_;
  ScratchFolder scratch_;  // copies of the files that edits came from
  int copies_ = 0;
  QThreadPool files_;  // last: waits for its threads before the rest goes
};

}  // namespace stepscope
