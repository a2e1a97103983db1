// SPDX-License-Identifier: GPL-3.0-or-later
// What the parts of a session share: each other, the facts that they write, and what runs at present. GUI thread.
#pragma once

#include <QObject>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class ModelSession;
class SessionAnswers;
class SessionDesires;
class SessionEdits;
class SessionInspector;
class SessionLab;
class SessionLink;
class SessionModel;
class SessionRecovery;
class SessionRewind;
class SessionStepper;
class SessionTrainer;

using OptionSettings = std::vector<std::pair<QString, QString>>;  // names and values
using Then = std::function<void()>;

inline constexpr std::int64_t kForever = std::int64_t{1} << 60;  // a step that no run comes to

// A run over steps, from the wish for it until it stands again.
struct RunNow {
  bool on = false;
  bool fullSpeed = false;
  bool everyValue = false;           // at full speed, and every value is looked at
  bool paused = false;               // a person ended it: what it asked for last is cancelled
  bool interrupted = false;          // it is cancelled to send options, and goes on
  std::optional<std::int64_t> goal;  // up to this step at full speed; stays when the worker dies, to go on
};

struct SessionParts {
  ModelSession& session;  // its signals
  SnapshotStore& store;
  SelectionModel& selection;
  RunNow& run;
  SessionLink& link;
  SessionAnswers& answers;
  SessionDesires& desires;
  SessionModel& model;
  SessionStepper& stepper;
  SessionTrainer& trainer;
  SessionRewind& rewind;
  SessionRecovery& recovery;
  SessionEdits& edits;
  SessionInspector& inspector;
  SessionLab& lab;
};

// The parts are made one after the other: a constructor calls none of them.
class SessionPart : public QObject {
  Q_OBJECT

 protected:
  explicit SessionPart(const SessionParts& parts)
      : parts_(parts),
        session_(parts.session),
        store_(parts.store),
        selection_(parts.selection),
        run_(parts.run),
        link_(parts.link) {}

  const SessionParts& parts_;
  ModelSession& session_;
  SnapshotStore& store_;
  SelectionModel& selection_;
  RunNow& run_;
  SessionLink& link_;
};

}  // namespace stepscope
