#include "engine/wire/server.h"

#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/build/options.h"
#include "engine/build/registry.h"
#include "engine/build/snapshots.h"
#include "engine/data/npy.h"
#include "engine/plugin/guard.h"
#include "engine/plugin/plugin_registry.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/values.h"
#include "engine/train/session.h"
#include "engine/wire/border.h"
#include "engine/wire/framing.h"
#include "engine/wire/lab_answers.h"
#include "engine/wire/stage_teller.h"

namespace stepscope {
namespace {

// The reader thread may outlive the service: after Shutdown it still waits for a stream that nobody closed. It shares the
// server.
class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(int in, int out, const snapshot::MachineInfo& machine, std::uint32_t largestReply, GoldenReader goldens)
      : in_(in), out_(out), largestReply_(largestReply), machine_(machine), goldens_(std::move(goldens)) {}

  Status run() {
    std::thread reader([self = shared_from_this()] { self->readLoop(); });
    while (true) {
      snapshot::Request request;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return !queue_.empty() || ended_; });
        if (queue_.empty() || (ended_ && !heard())) break;
        request = std::move(queue_.front());
        queue_.pop_front();
      }
      if (request.request_case() == snapshot::Request::kShutdown) {
        snapshot::Response response;
        response.mutable_state();
        send(request.id(), std::move(response), true);
        break;
      }
      if (!beginServing(request.id())) {
        sendError(request.id(), {ErrorCode::kCancelled, "request: cancelled before it began"});
        continue;
      }
      if (reserveIsSpent()) holdReserve();
      const Status status = caught("request", [&] { return handle(request); });
      stages_.drop();
      if (!status && status.error().code == ErrorCode::kOutOfMemory && session_)
        (void)caught("step", [&] { return session_->abandonStep(); });  // a half-done step must not go on
      const Status told = caught("answer", [&]() -> Status {
        if (!status) {
          tellBuilds();
          sendError(request.id(), status.error());
        }
        return {};
      });
      if (!told) return endNow(reader, told);
      const std::lock_guard lock(mutex_);
      serving_ = 0;
    }
    return end(reader);
  }

 private:
  // Not even the answer could be made: the client hears of it by the end of the stream.
  Status endNow(std::thread& reader, Status why) {
    reader.detach();
    return why;
  }

  Status end(std::thread& reader) {
    std::unique_lock lock(mutex_);
    const bool ended = ended_;
    const std::unique_ptr<Session> session = std::move(session_);  // freed here, whatever the reader does
    lock.unlock();
    if (!ended) {
      reader.detach();
      return {};
    }
    reader.join();
    return broken_;
  }

  void readLoop() {
    const Status read = caught("stream", [this] { return readRequests(); });
    const std::lock_guard lock(mutex_);
    if (!read && read.error().code != ErrorCode::kNotFound) broken_ = read;
    ended_ = true;
    if (session_) session_->cancel();  // nobody listens any more
    wake_.notify_one();
  }

  // Returns when the stream ends (kNotFound) or breaks.
  Status readRequests() {
    while (true) {
      SS_ASSIGN(const std::string frame, readFrame(in_));
      snapshot::Request request;
      if (!request.ParseFromString(frame) || request.request_case() == snapshot::Request::REQUEST_NOT_SET) {
        sendError(request.id(),
                  {ErrorCode::kCorrupt,
                   fmt::format("message: {} bytes are not a request; expected worker.proto's Request", frame.size())});
        continue;
      }
      // Answered at once, whatever runs: by this the client knows that the process is alive.
      if (request.request_case() == snapshot::Request::kHello) {
        if (const Status greeted = hello(request); !greeted) sendError(request.id(), greeted.error());
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (request.request_case() == snapshot::Request::kCancel) {
        if (serving_ == request.cancel().id() || request.cancel().id() == 0) {
          cancelling_ = true;
          if (session_) session_->cancel();
        } else {
          cancelled_.insert(request.cancel().id());
        }
        snapshot::Response response;
        response.mutable_state();
        send(request.id(), std::move(response), true);
        continue;
      }
      queue_.push_back(std::move(request));
      wake_.notify_one();
    }
  }

  Status hello(const snapshot::Request& request) {
    if (request.hello().protocol() != 1)
      return unsupported(fmt::format("protocol {}: expected 1", request.hello().protocol()));
    snapshot::Response response;
    response.mutable_hello()->set_protocol(1);
    response.mutable_hello()->set_version(machine_.version());
    *response.mutable_hello()->mutable_machine() = machine_;
    return trySend(request.id(), std::move(response), true);
  }

  // False when it was cancelled while it waited. From here on a cancel goes to what runs.
  bool beginServing(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    if (cancelled_.erase(id) > 0) return false;
    serving_ = id;
    cancelling_ = false;
    if (session_) session_->clearCancel();
    return true;
  }

  // Error: a message above the limit, of which nothing is written. The size is looked at first: protobuf serialises nothing
  // of 2 GiB or more.
  Status trySend(std::uint64_t id, snapshot::Response response, bool done) {
    response.set_id(id);
    response.set_done(done);
    if (const std::size_t size = response.ByteSizeLong(); size > largestReply_)
      return fail(ErrorCode::kLimitExceeded,
                  fmt::format("reply '{}': {} bytes; expected at most {}{}", replyName(response), size, largestReply_,
                              response.has_tensor() ? "; hint: fetch a part of the value" : ""));
    const std::string bytes = response.SerializeAsString();
    const std::lock_guard lock(writing_);
    if (!writeFrame(out_, bytes)) gone_ = true;  // nobody is left to tell
    return {};
  }

  // Whether somebody may still read the answers. Requests may all be written, and the stream closed, before the first of
  // them is answered, so the end of the input alone does not say that.
  bool heard() {
    pollfd out{out_, 0, 0};
    if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLNVAL)) != 0) gone_ = true;
    return !gone_;
  }

  static std::string replyName(const snapshot::Response& response) {
    const auto* field = snapshot::Response::descriptor()->FindFieldByNumber(static_cast<int>(response.response_case()));
    return field ? field->name() : "empty";
  }

  // What does not fit is replaced by a message that says so: an error in an answer, an alert in an event.
  void send(std::uint64_t id, snapshot::Response response, bool done) {
    const Status sent = trySend(id, std::move(response), done);
    if (sent) return;
    snapshot::Response lost;
    if (id != 0) {
      lost.mutable_error()->set_code(std::string(errorCodeName(sent.error().code)));
      lost.mutable_error()->set_message(sent.error().message);
      (void)trySend(id, std::move(lost), true);
      return;
    }
    lost.mutable_alert()->set_severity(snapshot::Alert::ERROR);
    lost.mutable_alert()->set_code("event_lost");
    lost.mutable_alert()->set_message(sent.error().message);
    lost.mutable_alert()->set_node(-1);
    lost.mutable_alert()->set_value(-1);
    lost.mutable_alert()->set_instruction(-1);
    (void)trySend(id, std::move(lost), done);
  }

  void sendError(std::uint64_t id, const Error& error) {
    snapshot::Response response;
    response.mutable_error()->set_code(std::string(errorCodeName(error.code)));
    response.mutable_error()->set_message(toUtf8(error.message));
    // Errors of options begin with the one that is at fault.
    constexpr std::string_view kOption = "option '";
    if (const std::string_view message = error.message; message.starts_with(kOption)) {
      const std::string_view rest = message.substr(kOption.size());
      response.mutable_error()->set_setting(toUtf8(std::string(rest.substr(0, rest.find('\'')))));
    }
    send(id, std::move(response), true);
  }

  snapshot::Response buildReply(std::size_t build) const {
    snapshot::Response response;
    auto& reply = *response.mutable_build();
    for (snapshot::PhaseSpan& span : session_->phasesOf(build)) *reply.add_phases() = std::move(span);
    for (const snapshot::Alert& alert : session_->alerts()) *reply.add_alerts() = alert;
    for (const Stage& stage : session_->stages()) reply.add_stages(stage.phase);
    reply.set_loss(session_->lossValue().index);
    return response;
  }

  // Whatever made a plan, the client hears of it before the answer to what it asked for: what it shows is of another build.
  void tellBuilds() {
    if (!session_) return;
    if (toldBuilds_ < session_->builds()) stages_.drop();  // none of a build comes after its end
    for (; toldBuilds_ < session_->builds(); ++toldBuilds_) {
      send(0, buildReply(toldBuilds_), false);
      shownBuild_ = toldBuilds_;
    }
    if (!session_->built() || session_->runningBuild() == shownBuild_) return;
    shownBuild_ = session_->runningBuild();
    snapshot::Response again = buildReply(shownBuild_);
    again.mutable_build()->set_kept(session_->runningSignature());
    send(0, std::move(again), false);
  }

  // In another plan the paused step and the breakpoints have other numbers.
  void tellPlaces() {
    if (!session_->position().in_step()) return;
    tellBuilds();
    snapshot::Response position, breakpoints;
    *position.mutable_position() = session_->position();
    send(0, std::move(position), false);
    breakpoints.mutable_breakpoints();
    for (const snapshot::Breakpoint& b : session_->breakpoints()) *breakpoints.mutable_breakpoints()->add_breakpoints() = b;
    send(0, std::move(breakpoints), false);
  }

  // An answer of the thread that serves. Error: it is too large to be sent; the error becomes the answer.
  Status answer(std::uint64_t id, snapshot::Response response, bool done) {
    tellBuilds();
    return trySend(id, std::move(response), done);
  }

  Observer observer() {
    Observer o;
    o.phase = [this](const snapshot::PhaseSpan& span) {
      snapshot::Response event;
      *event.mutable_phase() = span;
      send(0, std::move(event), false);
    };
    o.begins = o.phase;
    o.stage = [this](const Stage& stage) { stages_.tell(stage); };
    o.alert = [this](const snapshot::Alert& alert) {
      snapshot::Response event;
      *event.mutable_alert() = alert;
      send(0, std::move(event), false);
    };
    o.progress = [this](const std::string& what, std::int64_t done, std::int64_t total) {
      snapshot::Response event;
      event.mutable_progress()->set_what(what);
      event.mutable_progress()->set_done(done);
      event.mutable_progress()->set_total(total);
      send(0, std::move(event), false);
    };
    return o;
  }

  Status needSession() const {
    if (!session_) return invalid("session: no model is open; open one first");
    return {};
  }

  Status needPlan() const {
    SS_TRY(needSession());
    if (!session_->built()) return invalid("value: nothing was built; build first");
    return {};
  }

  Status answerPosition(std::uint64_t id, Result<snapshot::Position> position) {
    if (!position) return tl::make_unexpected(position.error());
    snapshot::Response response;
    *response.mutable_position() = std::move(*position);
    return answer(id, std::move(response), true);
  }

  Status open(const snapshot::Request& request) {
    LoadOptions load;
    if (request.open().missing_weights() == "random") load.missingWeights = LoadOptions::MissingWeights::kRandom;
    for (const std::string& path : request.open().search_paths()) load.searchPaths.emplace_back(path);
    // Plugins are those of the environment: code is loaded because this machine's user wants it, not because a window asks.
    SS_ASSIGN(plugins_, pluginWish({}, "environment"));
    if (!plugins_.files.empty()) tellPluginCrashes(0);
    SS_ASSIGN(auto registry, registryWith(plugins_));
    std::vector<Problem> problems;
    auto session = Session::open(request.open().path(), load, observer(), &problems, std::move(registry));
    snapshot::Response response;
    if (!session) {
      if (problems.empty()) return tl::make_unexpected(session.error());
      // The window shows every problem with its place, so the answer carries them beside the error.
      auto& model = *response.mutable_model();
      model.set_path(request.open().path());
      for (const Problem& p : problems) {
        auto& problem = *model.add_problems();
        problem.set_where(toUtf8(p.where));
        problem.set_message(toUtf8(p.message));
        problem.set_hint(toUtf8(p.hint));
        problem.set_node(-1);
        if (const std::string weight = p.missingWeight(); !weight.empty()) {
          auto& parameter = *model.add_parameters();
          parameter.set_name(toUtf8(weight));
          parameter.set_missing(true);
        }
      }
      SS_TRY(answer(request.id(), std::move(response), false));
      return tl::make_unexpected(session.error());
    }
    {
      const std::lock_guard lock(mutex_);
      session_ = std::move(*session);
    }
    toldBuilds_ = shownBuild_ = 0;
    options_ = TrainOptions{};
    options_.missingWeights = request.open().missing_weights() == "random" ? "random" : "error";
    *response.mutable_model() = session_->inspect();
    return answer(request.id(), std::move(response), true);
  }

  Status configure(const snapshot::Request& request) {
    SS_TRY(needSession());
    TrainOptions options;
    options.missingWeights = options_.missingWeights;
    SS_TRY(applyEnvironment(options, plugins_, session_->registry().options()));
    for (const snapshot::Setting& setting : request.configure().settings()) {
      const auto equals = setting.value().find('=');
      if (setting.name() == "set" && equals != std::string::npos)
        SS_TRY(applySetting(options, setting.value().substr(0, equals), setting.value().substr(equals + 1), "window",
                            session_->registry().options()));
      else
        SS_TRY(applySetting(options, setting.name(), setting.value(), "window", session_->registry().options()));
    }
    SS_TRY(session_->setOptions(options));
    options_ = options;
    return answerOptions(request.id());
  }

  // Nothing is set unless all of it can be.
  Status setOption(const snapshot::Request& request) {
    SS_TRY(needSession());
    TrainOptions options = session_->options();
    const auto set = [&](const std::string& name, const std::string& value) -> Status {
      if (name == "precision.force") SS_TRY(applySetting(options, name, "", "window"));  // the new list, not one more
      return applySetting(options, name, value, "window", session_->registry().options());
    };
    SS_TRY(set(request.set_option().name(), request.set_option().value()));
    for (const snapshot::Setting& setting : request.set_option().more()) SS_TRY(set(setting.name(), setting.value()));
    SS_TRY(session_->setOptions(std::move(options)));
    const std::size_t build = session_->runningBuild();
    SS_TRY(session_->applyOptions());
    if (session_->runningBuild() != build) tellPlaces();
    return answerOptions(request.id());
  }

  Status recompute(const snapshot::Request& request) {
    SS_TRY(needSession());
    const snapshot::GetRecompute& asked = request.recompute();
    std::optional<RecomputeQuestion> question;
    if (asked.what_if()) {
      if (asked.budget() < 0)
        return invalid(fmt::format("recompute: found a budget of {} bytes; expected 0 (none) or more", asked.budget()));
      question.emplace();
      SS_ASSIGN(question->plan, parseRecomputePlan(asked.plan()));
      question->budget = asked.budget();
    }
    SS_ASSIGN(auto report, session_->recomputeReport(question));
    snapshot::Response response;
    *response.mutable_recompute() = std::move(report);
    return answer(request.id(), std::move(response), true);
  }

  Status precision(const snapshot::Request& request) {
    SS_TRY(needSession());
    SS_ASSIGN(auto report, session_->precisionStudy(request.precision()));
    snapshot::Response response;
    *response.mutable_precision() = std::move(report);
    return answer(request.id(), std::move(response), true);
  }

  // Each trial is told as soon as it is measured: who cancels has seen it.
  Status trials(const snapshot::Request& request) {
    SS_TRY(needSession());
    const auto tried = [&](const snapshot::Trial& trial) {
      snapshot::Response one;
      *one.mutable_trials()->add_trials() = trial;
      send(request.id(), std::move(one), false);
    };
    snapshot::Response response;
    SS_ASSIGN(*response.mutable_trials(), session_->trials(request.trials(), tried));
    return answer(request.id(), std::move(response), true);
  }

  // The captured state is that of step 0 with the captured data.
  Status golden(const snapshot::Request& request) {
    SS_TRY(needPlan());
    const std::filesystem::path folder(request.golden().folder());
    snapshot::Response response;
    auto& comparison = *response.mutable_golden();
    std::optional<Golden> captured;
    if (goldens_) {
      SS_ASSIGN(captured, goldens_(folder, session_->options()));
    }
    if (!captured) return answer(request.id(), std::move(response), true);
    comparison.set_captured(true);
    const std::string data = (folder / "batches.npz").string();
    std::error_code error;
    if (!std::filesystem::equivalent(session_->options().data, data, error))
      comparison.set_unchecked(
          toUtf8(fmt::format("data '{}': not that of the capture; expected '{}'", session_->options().data, data)));
    else if (session_->nextStep() != 0)
      comparison.set_unchecked(
          fmt::format("step {}: its parameters are not those that were captured; expected step 0", session_->nextStep()));
    if (!comparison.unchecked().empty()) return answer(request.id(), std::move(response), true);
    const auto report = session_->compareWithGolden(*captured);
    if (!report && report.error().code == ErrorCode::kCancelled) return tl::make_unexpected(report.error());
    if (report)
      comparison = goldenAnswer(*report, *session_);
    else
      comparison.set_unchecked(toUtf8(report.error().message));
    return answer(request.id(), std::move(response), true);
  }

  Status answerOptions(std::uint64_t id) {
    snapshot::Response response;
    auto& list = *response.mutable_options();
    for (snapshot::Option& option : session_->optionList()) *list.add_options() = std::move(option);
    if (const auto* proof = session_->optionProof()) *list.mutable_proof() = *proof;
    list.set_waits(session_->optionsWait());
    return answer(id, std::move(response), true);
  }

  Status build(const snapshot::Request& request) {
    SS_TRY(needSession());
    SS_TRY(session_->build());
    stages_.drop();
    // Told by the answer itself; one that failed before it was told by an event.
    const std::size_t newest = session_->builds() - 1;
    for (; toldBuilds_ < newest; ++toldBuilds_) send(0, buildReply(toldBuilds_), false);
    toldBuilds_ = session_->builds();
    shownBuild_ = newest;
    return answer(request.id(), buildReply(newest), true);
  }

  Status train(const snapshot::Request& request) {
    SS_TRY(needSession());
    const std::int64_t steps = request.train().steps();
    for (std::int64_t i = 0; i < steps; ++i) {
      if (reserveIsSpent()) return tl::make_unexpected(outOfMemory(fmt::format("train: after {} of {} steps", i, steps)));
      if (gone_) return fail(ErrorCode::kCancelled, fmt::format("train: the client is gone after {} of {} steps", i, steps));
      if (cancelling_) return fail(ErrorCode::kCancelled, fmt::format("train: cancelled after {} of {} steps", i, steps));
      session_->stopOnNumbers(request.train().breaks(), request.train().values());
      snapshot::StepRecord record;
      if (Status stepped = session_->step(record); !stepped) {
        if (session_->stoppedBy().empty()) return stepped;
        return answerPosition(request.id(), session_->position());
      }
      if (!request.train().record()) record.clear_spans();
      snapshot::Response response;
      *response.mutable_step() = std::move(record);
      SS_TRY(answer(request.id(), std::move(response), i + 1 == steps));
    }
    if (steps <= 0) return answerPosition(request.id(), session_->position());
    return {};
  }

  ValueId valueOf(std::int32_t id, const std::string& name) const {
    return name.empty() ? ValueId{id} : session_->findValue(name);
  }

  Status fetch(const snapshot::Request& request) {
    SS_TRY(needPlan());
    const snapshot::FetchTensor& f = request.fetch();
    const std::vector<std::int64_t> begin(f.begin().begin(), f.begin().end()), extent(f.extent().begin(), f.extent().end());
    constexpr std::int64_t kWindowElements = 1 << 16, kAll = std::int64_t{1} << 27;
    SS_ASSIGN(snapshot::TensorData data, fetchValue(session_->stepper(), valueOf(f.value(), f.name()), begin, extent,
                                                    f.statistics(), f.whole() ? kAll : kWindowElements));
    snapshot::Response response;
    *response.mutable_tensor() = std::move(data);
    return answer(request.id(), std::move(response), true);
  }

  Status edit(const snapshot::Request& request) {
    SS_TRY(needPlan());
    Stepper& stepper = session_->stepper();
    const snapshot::EditTensor& e = request.edit();
    const ValueId id{e.value()};
    if (!e.path().empty()) {
      SS_TRY(editFromFile(stepper, id, e.path()));
    } else if (!e.data().empty()) {
      SS_ASSIGN(const TensorView view, stepper.value(id));
      if (view.bytes() != e.data().size())
        return invalid(fmt::format("edit: found {} bytes; expected {}", e.data().size(), view.bytes()));
      std::string bytes = e.data();
      SS_TRY(editData(stepper, id, {bytes.data(), view.dtype, view.dims}));
    } else {
      SS_TRY(editValue(stepper, id, {e.index().begin(), e.index().end()}, e.number(), e.fill()));
    }
    return answerPosition(request.id(), session_->position());
  }

  Status compareTensor(const snapshot::Request& request) {
    SS_TRY(needPlan());
    const Stepper& stepper = session_->stepper();
    const snapshot::CompareTensor& c = request.compare_tensor();
    const ValueId id{c.value()};
    SS_ASSIGN(snapshot::ComparisonResult result,
              c.path().empty() ? compareWithValue(stepper, id, ValueId{c.other()}) : compareWithFile(stepper, id, c.path()));
    snapshot::Response response;
    response.mutable_compare()->set_equal(result.equal_bits());
    *response.mutable_compare()->add_values() = std::move(result);
    return answer(request.id(), std::move(response), true);
  }

  Status state(std::uint64_t id) {
    snapshot::Response response;
    auto& s = *response.mutable_state();
    s.set_open(session_ != nullptr);
    if (session_) {
      s.set_built(session_->built());
      *s.mutable_position() = session_->position();
      for (const std::int64_t step : session_->ring()) s.add_ring(step);
      for (const snapshot::Breakpoint& b : session_->breakpoints()) *s.add_breakpoints() = b;
    }
    return answer(id, std::move(response), true);
  }

  Status handle(const snapshot::Request& request) {
    using R = snapshot::Request;
    const std::uint64_t id = request.id();
    snapshot::Response response;
    switch (request.request_case()) {
      case R::kOpen: return open(request);
      case R::kConfigure: return configure(request);
      case R::kBuild: return build(request);
      case R::kGraph: {
        SS_TRY(needSession());
        SS_ASSIGN(*response.mutable_graph(), session_->graphSnapshot(request.graph().phase()));
        break;
      }
      case R::kPlan: {
        SS_TRY(needSession());
        SS_ASSIGN(*response.mutable_plan(), session_->planSnapshot());
        break;
      }
      case R::kOptions: SS_TRY(needSession()); return answerOptions(id);
      case R::kMachine: *response.mutable_machine() = machine_; break;
      case R::kDeterminism:
        SS_TRY(needSession());
        response.mutable_determinism();
        for (snapshot::Determinism& verdict : session_->determinism())
          *response.mutable_determinism()->add_nodes() = std::move(verdict);
        break;
      case R::kTrain: return train(request);
      case R::kBeginStep:
        SS_TRY(needSession());
        SS_TRY(session_->beginStep());
        return answerPosition(id, session_->position());
      case R::kStep: SS_TRY(needSession()); return answerPosition(id, session_->stepInstructions(request.step().count()));
      case R::kRunTo: SS_TRY(needSession()); return answerPosition(id, session_->runTo(request.run_to().instruction()));
      case R::kRunToBreak:
        SS_TRY(needSession());
        return answerPosition(id, session_->runToBreak(request.run_to_break().backwards()));
      case R::kStepPhase:
        SS_TRY(needSession());
        return answerPosition(id, session_->stepPhase(request.step_phase().backwards()));
      case R::kFinishStep: {
        SS_TRY(needSession());
        SS_ASSIGN(*response.mutable_step(), session_->finishStep());
        break;
      }
      case R::kAbandonStep:
        SS_TRY(needSession());
        SS_TRY(session_->abandonStep());
        return answerPosition(id, session_->position());
      case R::kRewind:
        SS_TRY(needSession());
        SS_TRY(session_->rewind(request.rewind().step()));
        return answerPosition(id, session_->position());
      case R::kBreakpoints: {
        SS_TRY(needSession());
        SS_TRY(session_->setBreakpoints(
            {request.breakpoints().breakpoints().begin(), request.breakpoints().breakpoints().end()}));
        response.mutable_breakpoints();
        for (const snapshot::Breakpoint& b : session_->breakpoints()) *response.mutable_breakpoints()->add_breakpoints() = b;
        break;
      }
      case R::kFetch: return fetch(request);
      case R::kEdit: return edit(request);
      case R::kPin:
        SS_TRY(needSession());
        SS_TRY(session_->pin(ValueId{request.pin().value()}, request.pin().pinned()));
        tellPlaces();
        return answerPosition(id, session_->position());
      case R::kWatch: {
        SS_TRY(needSession());
        std::vector<ValueId> values;
        for (const std::int32_t v : request.watch().values()) values.push_back(ValueId{v});
        session_->watch(std::move(values));
        return answerPosition(id, session_->position());
      }
      case R::kSetOption: return setOption(request);
      case R::kCompareBits: {
        SS_TRY(needSession());
        SS_ASSIGN(*response.mutable_compare(), session_->compareBits());
        break;
      }
      case R::kSaveTensor: {
        SS_TRY(needPlan());
        SS_ASSIGN(const TensorView view, session_->stepper().value(ValueId{request.save_tensor().value()}));
        SS_TRY(writeNpy(request.save_tensor().path(), view));
        return state(id);
      }
      case R::kCompareTensor: return compareTensor(request);
      case R::kRowLosses:
        SS_TRY(needPlan());
        *response.mutable_row_losses() = rowLossesNow(session_->stepper());
        break;
      case R::kRecompute: return recompute(request);
      case R::kPrecision: return precision(request);
      case R::kTrials: return trials(request);
      case R::kGolden: return golden(request);
      case R::kSaveState:
        SS_TRY(needSession());
        SS_TRY(session_->saveState(request.save_state().path()));
        return state(id);
      case R::kLoadState:
        SS_TRY(needSession());
        SS_TRY(session_->loadState(request.load_state().path(), request.load_state().resume()));
        return answerPosition(id, session_->position());
      case R::kState: return state(id);
      case R::kHello:
      case R::kCancel:
      case R::kShutdown:
      case R::REQUEST_NOT_SET: return fail(ErrorCode::kInternal, "request: handled by the reader");
    }
    return answer(id, std::move(response), true);
  }

  int in_, out_;
  const std::uint32_t largestReply_;  // bytes
  const snapshot::MachineInfo machine_;
  const GoldenReader goldens_;
  std::mutex mutex_;    // queue, session pointer, cancellation
  std::mutex writing_;  // the output stream
  std::condition_variable wake_;
  std::deque<snapshot::Request> queue_;
  std::set<std::uint64_t> cancelled_;
  std::uint64_t serving_ = 0;
  std::atomic<bool> cancelling_ = false;
  std::atomic<bool> gone_ = false;  // an answer could not be written
  bool ended_ = false;
  Status broken_;
  std::unique_ptr<Session> session_;
  PluginWish plugins_;  // of the session
  TrainOptions options_;
  std::size_t toldBuilds_ = 0;  // of the session
  std::size_t shownBuild_ = 0;  // whose plan the client knows as the one that runs
  // Events of id 0; without what the end of the build knows of loss and parameters.
  StageTeller stages_{[this](const Stage& stage) {
    snapshot::Response event;
    *event.mutable_graph() = toSnapshot(*stage.graph, stage.phase, {}, {}, Registry::builtIn()->operators().ops);
    if (event.ByteSizeLong() <= largestReply_) send(0, std::move(event), false);
  }};
};

}  // namespace

Status serveWorker(int in, int out, const snapshot::MachineInfo& machine, std::uint32_t largestReply, GoldenReader goldens) {
  return std::make_shared<Server>(in, out, machine, largestReply, std::move(goldens))->run();
}

}  // namespace stepscope
