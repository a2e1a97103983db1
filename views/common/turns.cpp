// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/turns.h"

#include <QCoreApplication>
#include <QPointer>
#include <QTimer>
#include <deque>

namespace stepscope::turns {
namespace {

struct Piece {
  QPointer<QObject> owner;
  std::function<void()> work;
};

// A timer of its own: calls of zero delay and queued calls all run in the turn in which they come due.
class Queue : public QObject {
 public:
  explicit Queue(QObject* parent) : QObject(parent) {
    timer_.setSingleShot(true);
    connect(&timer_, &QTimer::timeout, this, &Queue::runOne);
  }
  void add(Piece piece) {
    pieces_.push_back(std::move(piece));
    if (!timer_.isActive()) timer_.start(0);
  }
  int size() const { return static_cast<int>(pieces_.size()); }

 private:
  void runOne() {
    while (!pieces_.empty() && !pieces_.front().owner) pieces_.pop_front();
    if (pieces_.empty()) return;
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    if (!pieces_.empty()) timer_.start(0);
    piece.work();
  }

  QTimer timer_;
  std::deque<Piece> pieces_;
};

// Belongs to the application: a timer must not outlive it.
Queue& queue() {
  static QPointer<Queue> made;
  if (!made) made = new Queue(qApp);
  return *made;
}

}  // namespace

void later(QObject* owner, std::function<void()> work) { queue().add({owner, std::move(work)}); }
int waiting() { return queue().size(); }

}  // namespace stepscope::turns
