// What a window sees of a loop that another program runs, and how it holds it: one monitor between the threads of the
// program, which run passes (engine/train/pass_watcher.h), and the thread that serves the window.
//
// Without a window nothing is kept and nothing waits. With one, calls into attached sessions run one at a time, and each
// step (the forward pass of a call, and its backward pass where one follows) leaves a record. A pass may be held before an
// instruction and where it ends; what is read of values, plans and sessions is read while no program thread is in a call, or
// while it is held there. The window goes: all gates open.
//
// After a fork the child has no window: nothing of it waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "engine/step/breakpoint.h"
#include "engine/step/watched_values.h"
#include "engine/train/model_function.h"
#include "engine/train/session.h"

namespace stepscope {

// The only scalar float among the outputs; invalid: there is none, or several.
ValueId lossAmong(const OuterStep& outer, const Graph& graph);

class AttachedLoop {
 public:
  AttachedLoop();

  // --- the program
  // A call into an attached session; it waits while the window reads.
  class Inside {
   public:
    explicit Inside(AttachedLoop* loop) : loop_(loop && loop->enter() ? loop : nullptr) {}  // null: not attached
    ~Inside() {
      if (loop_) loop_->leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    AttachedLoop* const loop_;
  };
  bool listens() const;  // a window is there
  void begins(Session& session, const WatchedPass& pass);
  void before(int instruction);
  void after(int instruction);
  void ends(const WatchedPass& pass, bool failed);
  void forget(const Session& session);  // inside; it is closed
  // The program is about to do something of its own between two passes ("train.py:31: loss = ..."): it waits there where the
  // window holds it and steps. Outside of a call.
  void place(std::string what);
  bool stepsPlaces() const;  // place() may wait

  // --- the window. All by the thread that serves it, but cancel() and clearCancel().
  struct Shown {
    Session* session = nullptr;  // null: no pass has begun since the window came
    std::shared_ptr<const FunctionPlans> plans;
    Stepper* stepper = nullptr;
  };
  void connect();
  void disconnect();
  void cancel();
  void clearCancel();

  // Runs `work` while no program thread changes what it reads. Error kCancelled.
  Status read(const std::function<Status()>& work);
  // The plan that the window was told of last, for read().
  Shown told() const;
  ValueId toldLoss() const;
  std::int64_t steps() const;                   // that have ended since the window came
  bool tellShown();                             // the newest plan is told from now on; whether it is another
  std::string signatureOf(const Shown& shown);  // distinct for every plan of every session
  Status waitForPlan();                         // until a pass has begun. Error kCancelled
  Stepper* values() const;                      // of the told plan; null: another one has run since

  // Moves. They return when the loop is held, or nothing of it can be (hold), or the step ended (finish). Error kCancelled:
  // the loop has not come to a gate; it is held when it does.
  Status begin();                              // until the loop is held, wherever it comes to next
  Status hold();                               // before the next instruction, or the next pass; at once between passes
  Status runTo(int instruction, bool breaks);  // of the held call; or to a gate of another call
  Status finish();                             // until the held call ends; or to a gate of another call
  Status leavePlace(bool toPass);  // where it is held at one: to the next place; or, by others, to the next gate of a pass
  bool atPlace() const;
  void letGo(bool watchNumbers);  // all gates open; NaN and Inf breakpoints look at every value
  bool held() const;
  int instruction() const;        // the held one
  int count() const;              // instructions of the held plan
  int phaseEnd() const;           // of the held pass; of the next one, where it is held at the end
  snapshot::Position position();  // between two steps: before the oldest one that waits
  void setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints);  // of the told plan
  std::vector<snapshot::Breakpoint> breakpoints() const;
  // Of the told plan: their statistics are taken as they are computed, held or not, and are in the records of steps.
  void watch(const std::vector<ValueId>& values);

  struct Step {
    snapshot::StepRecord record;
    Shown of;
    std::int64_t lost = 0;  // before it, that were not taken in time
  };
  // The oldest record that waits; with `wait` it waits for one, and nothing means that the loop is held. Error kCancelled.
  Result<std::optional<Step>> takeStep(bool wait);
  void giveBack(Step step);  // the one that was taken last
  bool stepsWait() const;
  void tellPlanOf(const Step& step);

 private:
  struct Allow {  // a held pass may go on below this instruction
    bool anyCall = false;
    std::uint64_t call = 0;
    int until = 0;
    bool breaks = false;
    bool places = false;  // places between passes do not hold
    bool given = false;   // by a move
  };
  struct OpenCall {  // whose backward pass may follow
    std::vector<Span> spans;
    std::int64_t begin = 0;
    std::optional<double> loss;
    WatchedValues watched;
  };

  bool enter();
  void leave();
  bool inThisProcess() const;
  bool mayPass(int instruction) const;
  bool stands() const;  // held, and no move lets it go on
  void gate(std::unique_lock<std::mutex>& lock, int instruction);
  void look();
  void watchAll(const std::vector<ValueId>& values);
  const WatchedValues& watchedNow() const;
  void addWatched(const Stepper* held, snapshot::Position& position) const;
  Status waitForStop(std::unique_lock<std::mutex>& lock, const std::function<bool()>& also = {});
  void stepEnded(OpenCall call);
  std::int64_t measuredBytes(const Executor& executor);

  const int process_;
  std::atomic<bool> window_ = false;
  std::atomic<bool> holds_ = false;  // something may hold the program
  std::atomic<bool> looks_ = false;  // instructions are looked at: it may, or a value is watched
  mutable std::mutex mutex_;         // all below it
  std::condition_variable changed_;
  int inside_ = 0;  // program threads in a call
  std::thread::id owner_;
  int wanting_ = 0;  // reads that wait
  bool reading_ = false;
  bool holding_ = false;  // the mode: gates are closed
  bool watchesNumbers_ = false;
  Allow allow_;
  bool cancelled_ = false;

  bool inPass_ = false;
  WatchedPass pass_;  // while inPass_
  bool held_ = false;
  int at_ = 0;               // where it is held
  std::uint64_t stops_ = 0;  // times that it was held
  std::string place_;        // what it is held at between two passes; else empty
  std::uint64_t last_ = 0;   // the call whose pass ended last,
  int lastEnd_ = 0;          // and where it ended
  std::size_t toldSpans_ = 0;
  std::string stoppedBy_;
  int stoppedAt_ = 0;  // id of the breakpoint
  Shown shown_, told_;
  std::vector<snapshot::Breakpoint> breakpoints_;
  WatchedValues watched_;                         // as the newest step left them; each open call has its own
  snapshot::StepRecord watchedStep_;              // of the newest step: number and statistics
  std::shared_ptr<const FunctionPlans> pointed_;  // the plan of the numbers in all of them
  KnownNumbers known_;
  std::map<std::uint64_t, OpenCall> open_;
  std::deque<Step> ended_;
  std::int64_t steps_ = 0, lost_ = 0;
  std::map<const FunctionPlans*, std::int64_t> peaks_;  // measured bytes
  std::vector<std::pair<std::weak_ptr<const FunctionPlans>, std::string>> signatures_;
};

// Of one session of the program.
class AttachedSession final : public PassWatcher {
 public:
  AttachedSession(std::shared_ptr<AttachedLoop> loop, Session& session) : loop_(std::move(loop)), session_(session) {}
  AttachedLoop& loop() { return *loop_; }
  bool listens() const override { return loop_->listens(); }
  void begins(const WatchedPass& pass) override { loop_->begins(session_, pass); }
  void before(int instruction) override { loop_->before(instruction); }
  void after(int instruction) override { loop_->after(instruction); }
  void ends(const WatchedPass& pass, bool failed) override { loop_->ends(pass, failed); }

 private:
  const std::shared_ptr<AttachedLoop> loop_;
  Session& session_;
};

}  // namespace stepscope
