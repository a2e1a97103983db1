// A Session behind the requests of engine/snapshot/worker.proto. One thread serves; another may cancel.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/plugin/plugin_registry.h"
#include "engine/train/session.h"
#include "engine/wire/connection.h"
#include "engine/wire/server.h"
#include "engine/wire/stage_teller.h"

namespace stepscope {

class SessionService {
 public:
  // The connection outlives it.
  SessionService(Connection& connection, GoldenReader goldens);

  Cancellable cancellable();
  // Serves and answers, with an error too. Error: not even the answer could be made.
  Status serve(const snapshot::Request& request);
  // Why nothing can be computed in this process any more: the device of the session is lost.
  std::optional<Error> lost() const;

 private:
  Status handle(const snapshot::Request& request);
  Status needSession() const;
  Status needPlan() const;
  ValueId valueOf(std::int32_t id, const std::string& name) const;

  // --- requests
  Status open(const snapshot::Request& request);
  Status configure(const snapshot::Request& request);
  Status setOption(const snapshot::Request& request);  // nothing is set unless all of it can be
  Status build(const snapshot::Request& request);
  Status train(const snapshot::Request& request);
  Status recompute(const snapshot::Request& request);
  Status precision(const snapshot::Request& request);
  Status trials(const snapshot::Request& request);
  Status ledger(const snapshot::Request& request);
  Status capacity(const snapshot::Request& request);
  Status bisect(const snapshot::Request& request);
  Status golden(const snapshot::Request& request);
  Status gradcheck(const snapshot::Request& request);
  Status fetch(const snapshot::Request& request);
  Status edit(const snapshot::Request& request);
  Status compareTensor(const snapshot::Request& request);
  Status state(std::uint64_t id);

  // --- answers. Error: it is too large to be sent; the error becomes the answer.
  Status answer(std::uint64_t id, snapshot::Response response, bool done);
  Status answerPosition(std::uint64_t id, Result<snapshot::Position> position);
  Status answerOptions(std::uint64_t id);
  snapshot::Response buildReply(std::size_t build) const;

  // --- events
  Observer observer(std::shared_ptr<const Registry> registry);
  // Without what the end of the build knows of loss and parameters.
  void sendStage(const Stage& stage, const Registry& registry);
  void tellBuilds();
  void tellPlaces();

  Connection& connection_;
  const GoldenReader goldens_;
  std::mutex opening_;  // the pointer: another thread cancels what it points to
  std::atomic<bool> cancelOpening_ = false;
  std::unique_ptr<Session> session_;
  PluginWish plugins_;  // of the session
  TrainOptions options_;
  std::optional<Error> weightsLack_;  // the session has no weights to build with, only a graph to look at
  std::size_t toldBuilds_ = 0;        // of the session
  std::size_t shownBuild_ = 0;        // whose plan the client knows as the one that runs
  StageTeller stages_;
};

}  // namespace stepscope
