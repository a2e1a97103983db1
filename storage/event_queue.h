// The bounded queue between the threads that record and the one that writes. Internal to storage.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "storage/event.h"

namespace stepscope::storage {

class EventQueue {
 public:
  explicit EventQueue(std::size_t limitBytes) : limitBytes_(limitBytes) {}

  // Drops the event, or the detail in it, when the queue is too full. Dropping is counted per run and kind. With `patience`
  // it waits that long for room before, as long as what waits is being written: not after a failed attempt, and not again
  // until something was committed when the patience was for nothing. An event that is larger than the queue has room in an
  // empty one.
  void push(Event event, std::chrono::milliseconds patience = {});

  // Waits until the oldest event is `age` old, somebody is in a hurry, or the queue is closed; then returns everything,
  // preceded by the rows for what was lost. Returns an empty list only when the queue is closed and empty.
  std::deque<Event> take(std::chrono::milliseconds age);
  void done(std::size_t events);  // they are committed
  // They could not be written now: back to the front. What is dropped until the next done() is lost for this reason.
  void failed(std::deque<Event> events, std::string reason);

  // Asks for haste and waits until all events pushed so far are committed. False when an attempt failed meanwhile.
  bool flush();
  void stop();  // the writer gave up: flush returns, what waits and what comes is counted as lost
  // After stop(): what little of it says how the runs ended and what was lost of them. Once.
  std::deque<Event> lastWords();
  void close();  // take() drains what is there and then returns nothing

  // Sleeps until `time` is over, somebody flushes, or the queue is closed. Returns false when it is closed.
  bool wait(std::chrono::milliseconds time);

  std::int64_t waiting() const;
  std::size_t waitingBytes() const;
  std::int64_t lostTotal() const;
  std::int64_t lostSteps() const;
  std::int64_t waits() const;     // pushes that waited for room
  std::int64_t waitedNs() const;  // all of them together

 private:
  using LostKey = std::tuple<std::int64_t, std::string, std::string>;  // run, what, why
  bool hasRoom(std::size_t bytes) const { return bytes_ == 0 || bytes_ + bytes <= limitBytes_; }
  void waitForRoom(std::unique_lock<std::mutex>& lock, std::size_t bytes, std::chrono::milliseconds patience);
  void countLost(std::int64_t run, const std::string& what, std::int64_t amount, std::int64_t step);

  const std::size_t limitBytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  std::deque<Event> lastWords_;
  std::map<LostKey, Lost> lost_;
  std::size_t bytes_ = 0;
  std::int64_t lostTotal_ = 0, lostSteps_ = 0;
  std::string failure_;  // why the newest attempt to write failed; empty: it did not
  std::int64_t pushed_ = 0, done_ = 0, failures_ = 0;
  std::int64_t hurryUntil_ = 0;  // flush() waits for this many done events
  std::int64_t waits_ = 0, waitedNs_ = 0;
  int roomWanted_ = 0;      // pushes that wait
  bool impatient_ = false;  // one waited for nothing since the last commit
  std::chrono::steady_clock::time_point oldest_;
  bool closed_ = false, stopped_ = false;
};

}  // namespace stepscope::storage
