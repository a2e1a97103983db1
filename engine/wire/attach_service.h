// The loop of another program behind the requests of engine/snapshot/worker.proto: what is read is served, moves go
// forwards, and all else is refused, since the program drives (worker.proto, AttachedScript).
#pragma once

#include <string>
#include <vector>

#include "engine/wire/attached_loop.h"
#include "engine/wire/connection.h"

namespace stepscope {

class AttachService {
 public:
  // Fields of Request that it serves.
  static std::vector<std::string> served();

  // Both outlive it.
  AttachService(Connection& connection, AttachedLoop& loop, std::string script);
  ~AttachService();  // all gates open
  AttachService(const AttachService&) = delete;
  AttachService& operator=(const AttachService&) = delete;

  Cancellable cancellable();
  // Serves and answers, with an error too. Error: not even the answer could be made.
  Status serve(const snapshot::Request& request);

 private:
  Status handle(const snapshot::Request& request);
  Status open(const snapshot::Request& request);
  Status build(const snapshot::Request& request);
  Status graph(const snapshot::Request& request);
  Status plan(const snapshot::Request& request);
  Status options(const snapshot::Request& request);
  Status determinism(const snapshot::Request& request);
  Status fetch(const snapshot::Request& request);
  Status saveTensor(const snapshot::Request& request);
  Status compareTensor(const snapshot::Request& request);
  Status breakpoints(const snapshot::Request& request);
  Status move(const snapshot::Request& request, const Status& moved);
  Status runTo(const snapshot::Request& request, int instruction, bool breaks = false);
  Status stepPhase(const snapshot::Request& request);
  Status finish(const snapshot::Request& request);
  Status train(const snapshot::Request& request);
  Status hold(const snapshot::Request& request);

  Status read(const std::function<Status()>& work);  // with a plan that was told
  Result<Stepper*> values() const;                   // inside of read()
  Result<snapshot::Position> position();
  Result<snapshot::Response> state();
  Status answer(const snapshot::Request& request, snapshot::Response response, bool done = true);
  void warn(std::string code, std::string message, std::int64_t step);
  Status sendStep(const snapshot::Request& request, AttachedLoop::Step step, bool record, bool done);
  Result<snapshot::Response> buildReply();
  Status tellPlan();  // of the told plan, as an event

  Connection& connection_;
  AttachedLoop& loop_;
  const std::string script_;
};

}  // namespace stepscope
