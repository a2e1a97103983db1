// The two streams of a worker: requests that are read ahead on a thread of their own, and frames that are written whole.
//
// Hello and Cancel are answered by the reader, whatever is served meanwhile: by the first the client knows that the process
// is alive. All functions but readLoop() may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/snapshot/worker.pb.h"
#include "kernels/status.h"

namespace stepscope {

// What can be cancelled. Called under the connection's lock; both may be null.
struct Cancellable {
  std::function<void()> cancel;  // ends what runs now, or else what runs next
  std::function<void()> clear;   // takes that back
};

class Connection {
 public:
  // `largestReply`: bytes of a message that may be written. `attached`: of the program whose loop is served.
  Connection(int in, int out, snapshot::MachineInfo machine, std::uint32_t largestReply,
             std::optional<snapshot::AttachedScript> attached = {})
      : in_(in), out_(out), largestReply_(largestReply), machine_(std::move(machine)), attached_(std::move(attached)) {}

  // Reads until the stream ends or breaks, then watches until leave() whether anybody reads the answers: what runs is
  // cancelled where nobody does, and where the stream broke. The thread that runs it shares the connection: after Shutdown
  // it still waits for a stream that nobody closed.
  void readLoop();
  void leave();  // nothing is served any more
  // The next request that was not cancelled before it began; a cancel goes to `work` from here on, until served(). Nothing
  // when the stream has ended and nobody reads answers any more, or all that came was served.
  std::optional<snapshot::Request> next(const Cancellable& work);
  void served();
  bool ended() const;     // no more requests come
  Status broken() const;  // why, where that is not the end of the stream

  // What the thread that serves looks at between two parts of its work.
  bool cancelling() const { return cancelling_; }  // what is served
  bool gone() const { return gone_; }              // an answer could not be written: nobody is left to tell

  // Error: a message above the limit, of which nothing is written.
  Status trySend(std::uint64_t id, snapshot::Response response, bool done);
  // What does not fit is replaced by a message that says so: an error in an answer, an alert in an event (id 0).
  void send(std::uint64_t id, snapshot::Response response, bool done);
  void sendError(std::uint64_t id, const Error& error);
  void acknowledge(std::uint64_t id);  // an empty answer
  std::uint32_t largestReply() const { return largestReply_; }
  const snapshot::MachineInfo& machine() const { return machine_; }

 private:
  Status readRequests();
  Status hello(const snapshot::Request& request);
  void cancel(std::uint64_t id);
  bool heard();

  const int in_, out_;
  const std::uint32_t largestReply_;
  const snapshot::MachineInfo machine_;
  const std::optional<snapshot::AttachedScript> attached_;
  mutable std::mutex mutex_;  // all below it
  std::condition_variable wake_;
  std::deque<snapshot::Request> queue_;
  std::set<std::uint64_t> cancelled_;
  std::uint64_t serving_ = 0;
  Cancellable work_;
  bool ended_ = false, left_ = false;
  Status broken_;
  std::mutex writing_;  // the output stream
  std::atomic<bool> cancelling_ = false, gone_ = false;
};

}  // namespace stepscope
