#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/capture_folder.h"
#include "app/cli/checkpoints.h"
#include "app/cli/command.h"
#include "app/cli/golden_report.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/rank_agreement.h"
#include "app/cli/rank_run.h"
#include "app/cli/record_run.h"
#include "app/cli/recording_watch.h"
#include "app/cli/save_graphs.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/data/npy.h"
#include "engine/data/safetensors.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"
#include "engine/step/values.h"
#include "engine/train/export_inference.h"
#include "engine/wire/border.h"
#include "storage/recorder.h"

namespace stepscope::cli {
namespace {

struct TrainArguments {
  std::string model, project, saveGraphs, save, exportInference, dumpGrads, dumpParams, verify = "on", onNan;
  std::vector<std::string> fetch;
  bool json = false;
  // Ranks whose rank 0 writes a file of --save, or of --dump-grads: where they keep parts, what is in it comes from all.
  bool savesTogether = false, dumpsTogether = false, wholeParameters = false;
  bool recordsTogether = false;  // ranks whose rank 0 records: the others time their instructions for it
  SharedOptions shared;
};

std::atomic<bool> interrupted = false;
Session* runningTrain = nullptr;
RankRun* together = nullptr;  // ranks end at the same step: none of them throws a step away alone

void onTrainInterrupt(int signal) {
  interrupted = true;
  if (together)
    together->asked(signal);
  else if (runningTrain)
    runningTrain->cancel();
}

// Ctrl+C, a polite kill and a closed terminal end the run after the step that runs. `nohup` asked for the opposite.
void listenForTheEnd() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, onTrainInterrupt) == SIG_IGN && signal == SIGHUP) std::signal(signal, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // who reads the output went away: outputIsRead()
}

// Losses that are no finite number.
class LossWatch {
 public:
  // Tells the first one.
  std::optional<snapshot::Alert> look(const snapshot::StepRecord& record) {
    now_ = record.has_loss() && !std::isfinite(record.loss());
    if (!now_) return std::nullopt;
    if (count_++ > 0) return std::nullopt;
    first_ = record.step();
    snapshot::Alert alert = makeAlert(
        snapshot::Alert::ERROR, "loss_not_finite",
        fmt::format("loss of step {}: {}; expected a finite number", record.step(), units::signless(record.loss())));
    alert.set_step(record.step());
    return alert;
  }
  // For the end of the run; empty: every loss was finite.
  std::string text() const {
    if (count_ == 0) return {};
    return fmt::format("loss: not finite in {} step{}, first in step {}{}", count_, count_ == 1 ? "" : "s", first_,
                       now_ ? ", and in the last one" : "");
  }
  bool lastIsFinite() const { return !now_; }

 private:
  std::int64_t count_ = 0, first_ = 0;
  bool now_ = false;
};

Status dump(const Session& session, const TrainArguments& a,
            const std::vector<std::pair<std::string, std::string>>& fetches) {
  if (!a.dumpGrads.empty()) {
    std::map<std::string, Tensor> owned;
    std::map<std::string, TensorView> views;
    for (const ParameterChoice& parameter : session.plans().parameters()) {
      if (!parameter.trained) continue;
      const std::string& name = session.plans().valueOf(parameter).name;
      SS_ASSIGN(owned[name], session.trained().gradient(name));
      views[name] = owned[name].view();
    }
    SS_TRY(writeSafetensors(a.dumpGrads, views, {}));
  }
  if (!a.dumpParams.empty()) SS_TRY(writeSafetensors(a.dumpParams, session.trained().named(false), {}));
  for (const auto& [value, file] : fetches) {
    const ValueId id = session.findValue(value);
    if (!id)
      return fail(ErrorCode::kNotFound,
                  fmt::format("fetch '{}': the step does not compute it; expected a value of the graph", value));
    SS_ASSIGN(const TensorView view, session.stepper().value(id));
    SS_TRY(writeNpy(file, view));
  }
  return {};
}

// An exporter may drop what it does not know (label smoothing, no_grad, a hook): what PyTorch computed tells. Before the
// first step of a captured folder. Says nothing where there is nothing to compare.
Status compareWithCapture(const TrainArguments& a, Session& session, const Output& output,
                          const std::function<void(const snapshot::Alert&)>& tellAlert) {
  std::error_code error;
  if (a.verify == "off" || !std::filesystem::is_directory(a.model, error) || !a.shared.initFrom.empty() ||
      session.options().startStep != 0 ||
      session.options().data != (std::filesystem::path(a.model) / "batches.npz").string())
    return {};
  SS_ASSIGN(const auto captured, readGolden(a.model, session.options()));
  if (!captured) return {};
  const auto report = session.lab().compareWithGolden(captured->golden);
  if (!report && report.error().code == ErrorCode::kCancelled) return {};  // no step will run
  GoldenReport unchecked;
  if (!report) unchecked.unchecked = report.error().message;  // the run itself tells of it, or has room where two have not
  const GoldenReport& found = report ? *report : unchecked;
  if (found.count(GoldenVerdict::kDiffers) > 0)
    tellAlert(goldenAlert(found));
  else
    output.compared(found.unchecked.empty() ? "agrees" : "unchecked", kGoldenPrecision, found.notPrecision,
                    goldenLine(found));
  return {};
}

Status exportTrained(const Session& session, const TrainArguments& a, const Output& output) {
  if (a.exportInference.empty()) return {};
  SS_ASSIGN(const ExportedModel exported, exportInference(session, a.exportInference));
  if (output.json()) {
    sayJson(
        {{"event", "exported"}, {"file", a.exportInference}, {"tensors", exported.weights}, {"outputs", exported.outputs}});
    return {};
  }
  say("exported {}: {} tensors of the training, outputs {}\n", a.exportInference, exported.weights,
      fmt::join(exported.outputs, ", "));
  return {};
}

Status checkPlaces(const TrainArguments& a, const std::vector<std::pair<std::string, std::string>>& fetches) {
  SS_TRY(checkPlace("project", a.project));
  SS_TRY(checkPlace("save", a.save));
  SS_TRY(checkPlace("export-inference", a.exportInference));
  SS_TRY(checkPlace("dump-grads", a.dumpGrads));
  SS_TRY(checkPlace("dump-params", a.dumpParams));
  for (const auto& [value, file] : fetches) SS_TRY(checkPlace("fetch", file));
  return {};
}

Status train(const TrainArguments& a, const Output& output, TrainOptions options, RankRun* ranks) {
  if (a.project.empty() && !a.recordsTogether) options.record = "off";  // nobody would read it
  options.ringBytes = 0;                                                // nobody rewinds
  SS_ASSIGN(const auto fetches, parseFetches(a.fetch));
  SS_TRY(checkPlaces(a, fetches));
  std::vector<std::string> keep;
  for (const auto& [value, file] : fetches) keep.push_back(value);
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights));
  if (ranks) {
    session->joinRanks(ranks->ranks());
    SS_TRY(sameOnAllRanks(ranks->ranks(), "model", linesOf(session->imported())));
  }
  SS_TRY(prepare(*session, a.shared));
  session->keep(keep);
  session->keepGradients(!a.dumpGrads.empty() || a.dumpsTogether);
  const Status built = session->build();
  output.phaseTable(session->phases());
  if (!a.saveGraphs.empty()) SS_TRY(saveGraphs(*session, a.saveGraphs));
  std::unique_ptr<storage::Recorder> recorder;
  if (!a.project.empty()) {
    SS_ASSIGN(recorder, startRecorder(a.project, a.model, *session));
    recordBuild(*recorder, *session);
  }
  if (!built) {
    if (recorder) recorder->endRun(storage::RunStatus::kFailed, built.error().message);
    return built;
  }
  // A typing error is told before the work, not after it.
  for (const auto& [value, file] : fetches)
    if (!session->findValue(value)) {
      Error missing{ErrorCode::kNotFound,
                    fmt::format("fetch '{}': the step does not compute it; expected a value of the graph", value)};
      if (recorder) recorder->endRun(storage::RunStatus::kFailed, missing.message);
      return tl::make_unexpected(std::move(missing));
    }
  runningTrain = session.get();
  together = ranks;
  listenForTheEnd();
  std::optional<RecordingWatch> watch;
  if (recorder) watch.emplace(*recorder, output);
  LossWatch losses;
  Checkpoints checkpoints(a.save, options.checkpointSeconds, options.checkpointKeep);
  const auto tellAlert = [&](const snapshot::Alert& alert) {
    output.alert(alert);
    if (recorder) recorder->alert(alert);
  };
  std::int64_t done = 0;
  ProcessorTimes processor;
  Status failed = compareWithCapture(a, *session, output, tellAlert);
  const std::int64_t begin = monotonicNs();
  snapshot::StepRecord record;
  if (!a.onNan.empty()) session->numbers().blame(a.onNan == "stop");
  bool toldOfCause = false;
  const auto tellCause = [&] {
    if (a.onNan.empty() || toldOfCause || !session->numbers().cause()) return;
    toldOfCause = true;
    if (a.json || a.onNan != "alert") output.cause(*session->numbers().cause(), session->numbers().trail());
  };
  if (failed && ranks) failed = ranks->begin(*session);
  const auto asked = [] { return interrupted || !outputIsRead() || reserveIsSpent(); };
  bool stop = false, save = false;
  while (failed && done < options.steps && !(ranks ? stop : asked())) {
    const std::size_t buildsBefore = session->log().builds();
    Status stepped = session->step(record);
    tellCause();
    if (!stepped) {
      if (!session->numbers().stoppedBy().empty()) {
        failed = fail(ErrorCode::kInvalidArgument, session->numbers().stoppedBy());
      } else if (stepped.error().code != ErrorCode::kCancelled) {
        failed = std::move(stepped);
      }
      break;
    }
    ++done;
    if (record.cpu_ns() > 0) {
      processor.cpu += record.cpu_ns();
      processor.wait += record.wait_ns();
      processor.wall += record.ns();
    }
    if (ranks) {
      const auto wish = ranks->stepDone(*session, {asked(), checkpoints.due()}, record, output);
      if (!wish) {
        failed = tl::make_unexpected(wish.error());
        break;
      }
      stop = wish->stop && session->counters().micro == 0;
      save = wish->save;
    }
    output.step(record, done, options.steps, static_cast<double>(monotonicNs() - begin) * 1e-9);
    if (const auto alert = losses.look(record)) tellAlert(*alert);
    if (recorder) {
      if (session->log().builds() != buildsBefore) {  // a new variant was made
        recorder->beginBuild();
        recordBuild(*recorder, *session);
      }
      recorder->step(record);
      if (ranks) {
        recorder->ranks(ranks->newest());
        if (const std::int64_t lost = ranks->takeLostSpans(); lost > 0)
          recorder->lost("spans", lost, "a rank ran another plan than rank 0, whose instructions the project names",
                         "give all ranks batches of the same shapes");
      }
      watch->look();
    }
    if (ranks && session->counters().micro != 0) continue;  // sums of a round are another's too
    if (ranks && session->trained().keepsParts() && !ranks->leads()) {
      // What rank 0 writes is theirs too. It tells of a file that fails; an error of the ranks comes again with the next
      // step.
      if (save) (void)session->trained().save({});
      continue;
    }
    if (!save && ranks && session->trained().keepsParts()) continue;  // time may have come since the others were told
    if (const Status kept = checkpoints.onTheWay(*session); !kept) {
      snapshot::Alert alert =
          makeAlert(snapshot::Alert::WARNING, "checkpoint_failed", "checkpoint on the way: " + kept.error().message);
      alert.set_step(record.step());
      tellAlert(alert);
    }
  }
  const bool cutShort = done < options.steps && failed;  // by a signal, or because nobody reads the output
  runningTrain = nullptr;
  together = nullptr;
  if (failed && done < options.steps && reserveIsSpent())
    failed = tl::make_unexpected(outOfMemory(fmt::format("train: after {} steps", done)));
  if (failed && a.wholeParameters) failed = session->trained().bringTogether();
  if (failed && (done > 0 || options.steps == 0)) failed = dump(*session, a, fetches);
  if (failed && (done > 0 || options.steps == 0)) {
    const bool sends = ranks && !ranks->leads() && a.savesTogether && session->trained().keepsParts();
    failed = sends ? session->trained().save({}) : checkpoints.atTheEnd(*session);
  }
  if (failed && (done > 0 || options.steps == 0)) failed = exportTrained(*session, a, output);
  if (recorder) {
    for (const snapshot::Alert& alert : session->alerts()) recorder->alert(alert);
    recordDeviceTimes(*recorder, *session);
    recorder->endRun(!failed    ? storage::RunStatus::kFailed
                     : cutShort ? storage::RunStatus::kCancelled
                                : storage::RunStatus::kFinished,
                     failed ? losses.text() : failed.error().message);
    if (Status closed = watch->close(done); !closed) {
      if (!failed) tellError(closed.error().message);
      if (failed) failed = std::move(closed);
    }
  }
  SS_TRY(failed);
  if (cutShort)
    return fail(ErrorCode::kCancelled, fmt::format("train: cancelled after {} steps{}", done,
                                                   interrupted ? "" : ": nobody reads what it prints any more"));
  if (!losses.lastIsFinite()) return invalid(losses.text() + "; expected finite numbers");
  if (!losses.text().empty()) tellWarning("loss_not_finite", losses.text());
  if (ranks && ranks->leads()) ranks->summary(output);
  output.finished(done, monotonicNs() - begin, processor);
  return {};
}

// What a run writes.
std::vector<std::pair<std::string*, const char*>> filesOf(TrainArguments& a) {
  return {{&a.project, "--project"},
          {&a.saveGraphs, "--save-graphs"},
          {&a.save, "--save"},
          {&a.exportInference, "--export-inference"},
          {&a.dumpGrads, "--dump-grads"},
          {&a.dumpParams, "--dump-params"}};
}

// Files are written by the first rank, and what is printed is its.
void leaveOutputToTheFirst(TrainArguments& a, TrainOptions& options) {
  options.recordBatch.kind = options.recordStatistics.kind = SampleRate::Kind::kOff;  // rank 0 notes those of its own
  for (const auto& [file, name] : filesOf(a)) file->clear();
  a.fetch.clear();
  a.verify = "off";
  a.json = true;  // what nobody reads
}

Status trainTogether(TrainArguments& a) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_ASSIGN(const auto ranks, RankRun::join(options));
  a.savesTogether = ranks && !a.save.empty();
  a.dumpsTogether = ranks && !a.dumpGrads.empty() && options.rankShard != "off";
  a.wholeParameters = ranks && options.rankShard == "parameters" && !(a.dumpParams.empty() && a.exportInference.empty());
  if (!ranks) return train(a, Output(a.json), std::move(options), nullptr);
  a.recordsTogether = !a.project.empty();
  Lines lines = linesOf(options);
  for (const auto& [file, name] : filesOf(a))
    lines.emplace_back(fmt::format("output {}", name), file->empty() ? "no" : "yes");
  Status run = sameOnAllRanks(ranks->ranks(), "options", lines);
  if (!ranks->leads()) leaveOutputToTheFirst(a, options);
  if (run) run = train(a, Output(a.json), std::move(options), ranks.get());
  const Status ended = ranks->end(run);
  return run ? ended : run;
}

std::optional<int> wrongUsage(const TrainArguments& a) {
  if (const auto wrong = usageError(a.shared, a.fetch)) return wrong;
  if (a.verify != "on" && a.verify != "off") {
    tellError(fmt::format("option 'verify': found '{}'; expected on or off", a.verify));
    return kUsage;
  }
  if (!a.onNan.empty() && a.onNan != "blame" && a.onNan != "alert" && a.onNan != "stop") {
    tellError(fmt::format("option 'on-nan': found '{}'; expected blame, alert or stop", a.onNan));
    return kUsage;
  }
  const auto options = a.shared.apply();
  if (options->distributed != "off" && options->steps % options->accumulate != 0) {
    tellError(fmt::format("option 'steps': found {}; expected whole rounds of {} micro steps (option accumulate) with ranks",
                          options->steps, options->accumulate));
    return kUsage;
  }
  if (options->steps > 0 || (a.dumpGrads.empty() && a.fetch.empty())) return std::nullopt;
  tellError("option 'steps': found 0; expected at least 1 for --dump-grads and --fetch, which tell what a step computed");
  return kUsage;
}

}  // namespace

Command trainCommand() {
  auto a = std::make_shared<TrainArguments>();
  Command command{
      "train",
      "build, then run training steps; print the loss of each",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--project", &a->project, "record into this project file", "FILE"},
       {"--save-graphs", &a->saveGraphs, "write the graph after each phase as .onnx into this folder", "DIR"},
       {"--save", &a->save, "parameters and optimizer state after the last step, and on the way (option checkpoint.seconds)",
        "FILE.safetensors"},
       {"--export-inference", &a->exportInference,
        "the trained model for other programs: Dropout and statistics as in evaluation, without the loss", "FILE.onnx"},
       {"--dump-grads", &a->dumpGrads, "gradients at the last step, as accumulated, before clipping", "FILE.safetensors"},
       {"--dump-params", &a->dumpParams, "parameters and running statistics after the last step", "FILE.safetensors"},
       {"--fetch", &a->fetch, "VALUE=FILE.npy: any intermediate value of the last step"},
       {"--verify",
        &a->verify,
        "a folder of stepscope_capture: compare the first step with PyTorch's before it trains [on]",
        "on|off",
        false,
        false,
        {"on", "off"}},
       {"--on-nan",
        &a->onNan,
        "when loss or gradient turns NaN or infinite: replay the step, name the first cause, and go on with an alert of it "
        "(alert), print it with its operands and go on (blame), or also take the step back and end the run (stop)",
        "blame|alert|stop",
        false,
        false,
        {"blame", "alert", "stop"}},
       {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    if (const auto wrong = wrongUsage(*a)) return *wrong;
    if (Status status = trainTogether(*a); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
