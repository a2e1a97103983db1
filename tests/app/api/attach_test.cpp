// A window at the loop of a program that uses libstepscope (attach_script.cpp), over its socket.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <set>

#include "engine/snapshot/worker.pb.h"
#include "engine/wire/attach_socket.h"
#include "engine/wire/framing.h"
#include "tests/app/api/linear_model.h"

namespace stepscope::testing {
namespace {

// The program, which runs on until it is destroyed.
class Script {
 public:
  explicit Script(const TemporaryFolder& folder, long nanStep = -1) : socket_(folder.path() / "loop.sock") {
    const std::string model = folder.write("linear.onnx", linearModel()).string(), nan = std::to_string(nanStep);
    int in[2], out[2];
    EXPECT_EQ(pipe(in), 0);
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
      execl(ATTACH_SCRIPT, ATTACH_SCRIPT, model.c_str(), socket_.c_str(), nan.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
    EXPECT_TRUE(line().starts_with("step 0"));  // its socket is there
  }
  ~Script() { (void)end(); }
  // The next line that it prints, or that it has printed; empty at its end.
  std::string line() {
    std::size_t end;
    while ((end = text_.find('\n')) == std::string::npos)
      if (!readSome()) return {};
    std::string line = text_.substr(0, end + 1);
    text_.erase(0, end + 1);
    return line;
  }
  // What it has printed so far is forgotten.
  void skipPrinted() {
    pollfd out{out_, POLLIN, 0};
    while (poll(&out, 1, 0) > 0 && readSome()) {
    }
    text_.clear();
  }
  // Its exit code, after the last line.
  int end() {
    if (pid_ < 0) return -1;
    close(in_);
    while (!line().empty()) {
    }
    close(out_);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill() { ::kill(pid_, SIGKILL); }
  int pid() const { return pid_; }
  std::string target() const { return socket_.string(); }

 private:
  bool readSome() {
    std::array<char, 4096> some{};
    const ssize_t n = read(out_, some.data(), some.size());
    if (n > 0) text_.append(some.data(), static_cast<std::size_t>(n));
    return n > 0;
  }

  const std::filesystem::path socket_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string text_;
};

class Window {
 public:
  explicit Window(const std::string& target) : fd_(connectToScript(target)) {
    EXPECT_TRUE(fd_) << (fd_ ? std::string() : fd_.error().message);
  }
  ~Window() { leave(); }
  void leave() {
    if (fd_ && *fd_ >= 0) close(*fd_);
    fd_ = -1;
  }
  std::uint64_t send(snapshot::Request request) {
    request.set_id(++id_);
    (void)writeFrame(*fd_, request.SerializeAsString());  // of a script that is gone its end tells
    return id_;
  }
  // All answers to the newest request, the events among them; an error of code "gone" where the script is.
  std::vector<snapshot::Response> answers() {
    std::vector<snapshot::Response> all;
    do {
      const auto frame = readFrame(*fd_);
      snapshot::Response response;
      if (frame && response.ParseFromString(*frame)) {
        all.push_back(response);
        continue;
      }
      response.set_id(id_);
      response.set_done(true);
      response.mutable_error()->set_code("gone");
      all.push_back(response);
    } while (all.back().id() != id_ || !all.back().done());
    return all;
  }
  snapshot::Response ask(snapshot::Request request) {
    send(std::move(request));
    return answers().back();
  }
  snapshot::Position step(int count) {
    snapshot::Request request;
    request.mutable_step()->set_count(count);
    const auto answer = ask(std::move(request));
    EXPECT_TRUE(answer.has_position()) << answer.ShortDebugString();
    return answer.position();
  }
  // Before the first instruction of a call; it may be held in the middle of one first.
  snapshot::Position begin() {
    snapshot::Request begin, finish;
    begin.mutable_begin_step();
    finish.mutable_finish_step();
    for (int gate = 0; gate < 4; ++gate) {
      const snapshot::Position place = ask(begin).position();
      if (place.instruction() == 0) return place;
      (void)ask(finish);
    }
    ADD_FAILURE() << "it is never held where a call begins";
    return {};
  }
  snapshot::StepRecord finish() {
    snapshot::Request request;
    request.mutable_finish_step();
    const auto answer = ask(std::move(request));
    EXPECT_TRUE(answer.has_step()) << answer.ShortDebugString();
    return answer.step();
  }
  std::vector<snapshot::Response> train(std::int64_t steps, bool numbers = false) {
    snapshot::Request request;
    request.mutable_train()->set_steps(steps);
    request.mutable_train()->set_record(true);
    request.mutable_train()->set_breaks(numbers);
    request.mutable_train()->set_values(numbers);
    send(std::move(request));
    return answers();
  }
  std::vector<float> value(const std::string& name) {
    snapshot::Request request;
    request.mutable_fetch()->set_name(name);
    request.mutable_fetch()->set_whole(true);
    const auto answer = ask(std::move(request));
    EXPECT_TRUE(answer.has_tensor()) << answer.ShortDebugString();
    EXPECT_EQ(answer.tensor().unavailable(), "") << name;
    std::vector<float> numbers(answer.tensor().data().size() / sizeof(float));
    std::memcpy(numbers.data(), answer.tensor().data().data(), numbers.size() * sizeof(float));
    return numbers;
  }
  // What it shows first: model, plan.
  snapshot::Plan look() {
    snapshot::Request open, build, plan;
    open.mutable_open();
    build.mutable_build();
    plan.mutable_plan();
    EXPECT_TRUE(ask(open).has_model());
    EXPECT_TRUE(ask(build).has_build());
    return ask(plan).plan();
  }

 private:
  Result<int> fd_;
  std::uint64_t id_ = 0;
};

TEST(Attach, SeesThePlanAndEveryStepOfTheScript) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  snapshot::Request hello;
  hello.mutable_hello()->set_protocol(1);
  const auto greeting = window.ask(hello).hello();
  EXPECT_EQ(greeting.attached().pid(), script.pid());
  EXPECT_EQ(greeting.attached().script(), "attach_script");
  EXPECT_GT(greeting.attached().serves_size(), 10);
  const snapshot::Plan plan = window.look();
  ASSERT_GT(plan.instructions_size(), 4);
  EXPECT_LT(plan.first_backward(), plan.instructions_size());
  EXPECT_NE(plan.signature().find("x float32[2, 4]"), std::string::npos) << plan.signature();
  const auto steps = window.train(5);
  std::vector<std::string> seen;
  std::int64_t expected = -1;
  for (const auto& answer : steps) {
    if (!answer.has_step()) continue;
    EXPECT_TRUE(expected < 0 || answer.step().step() == expected);
    expected = answer.step().step() + 1;
    EXPECT_EQ(answer.step().spans_size(), plan.instructions_size());
    EXPECT_TRUE(answer.step().has_loss());
    EXPECT_GT(answer.step().ns(), 0);
    seen.push_back(fmt::format("loss {:.9g}\n", answer.step().loss()));
  }
  ASSERT_EQ(seen.size(), 5u);
  // They are among those that the script has printed, one after the other.
  std::size_t found = 0;
  for (std::string line = script.line(); !line.empty() && found < seen.size(); line = script.line())
    found = line.ends_with(seen[found]) ? found + 1 : 0;
  EXPECT_EQ(found, seen.size());
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, HoldsTheScriptBeforeAnInstructionAndReadsItsValues) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  const snapshot::Plan plan = window.look();
  snapshot::Position place = window.begin();
  EXPECT_TRUE(place.in_step());
  EXPECT_EQ(place.instruction(), 0);
  place = window.step(1);
  EXPECT_EQ(place.instruction(), 1);
  EXPECT_EQ(place.spans_size(), 1);
  // x · w, as it is computed here of what the script has there.
  const auto x = window.value("x"), w = window.value("w"), product = window.value("prediction");
  ASSERT_EQ(product.size(), 8u);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 4; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += double{x[4 * row + k]} * double{w[4 * k + column]};
      EXPECT_NEAR(product[4 * row + column], sum, 1e-6);
    }
  // To the end of the forward pass; the next instruction is of the backward pass, behind the script's own loss.
  snapshot::Request phase;
  phase.mutable_step_phase();
  place = window.ask(phase).position();
  const int forward = place.instruction();
  ASSERT_GT(forward, 1);
  ASSERT_LT(forward, plan.instructions_size());
  EXPECT_TRUE(place.in_step());
  const float loss = window.value("loss").at(0);
  place = window.step(1);
  EXPECT_EQ(place.instruction(), forward + 1);
  const snapshot::StepRecord record = window.finish();
  EXPECT_EQ(record.spans_size(), plan.instructions_size());
  EXPECT_EQ(static_cast<float>(record.loss()), loss);
  // It waits before its next pass, until it is let go.
  place = window.begin();
  EXPECT_EQ(place.step(), record.step() + 1);
  EXPECT_EQ(place.instruction(), 0);
  EXPECT_EQ(window.step(plan.instructions_size()).stopped_by(), "end of step");
  const auto all = window.train(3);
  EXPECT_TRUE(all.back().has_step());
  snapshot::Request hold;
  hold.mutable_hold();
  EXPECT_TRUE(window.ask(hold).has_state());
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, TheScriptGoesOnWhenTheWindowThatHeldItIsGone) {
  const TemporaryFolder folder;
  Script script(folder);
  for (int time = 0; time < 3; ++time) {
    Window window(script.target());
    window.look();
    EXPECT_TRUE(window.begin().in_step());
    EXPECT_EQ(window.step(2).instruction(), 2);
    script.skipPrinted();  // it prints no more while it is held
    window.leave();
    EXPECT_TRUE(script.line().starts_with("step "));
  }
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, BreakpointsHoldIt) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  const snapshot::Plan plan = window.look();
  window.begin();
  snapshot::Request set, run;
  auto& breakpoint = *set.mutable_breakpoints()->add_breakpoints();
  breakpoint.set_instruction(plan.instructions_size() - 1);
  breakpoint.set_enabled(true);
  ASSERT_EQ(window.ask(set).breakpoints().breakpoints_size(), 1);
  run.mutable_run_to_break();
  const snapshot::Position place = window.ask(run).position();
  EXPECT_EQ(place.instruction(), plan.instructions_size() - 1);
  EXPECT_EQ(place.breakpoint(), 1);
  EXPECT_NE(place.stopped_by().find("breakpoint 1"), std::string::npos) << place.stopped_by();
  EXPECT_EQ(window.ask(run).position().stopped_by(), "end of step");
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

// The script changes them between two steps: a condition is tested where a call first reads the parameter.
TEST(Attach, AConditionOnAParameterOfTheScriptHoldsIt) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  window.look();
  window.begin();
  snapshot::Request set, run;
  auto& condition = *set.mutable_breakpoints()->add_breakpoints();
  condition.set_predicate("w max > 1");
  condition.set_enabled(true);
  ASSERT_EQ(window.ask(set).breakpoints().breakpoints_size(), 1);
  run.mutable_run_to_break();
  snapshot::Position place;
  for (int step = 0; step < 2000 && place.breakpoint() == 0; ++step) {  // as the window runs
    place = window.ask(run).position();
    if (place.breakpoint() == 0) window.finish();
  }
  ASSERT_EQ(place.breakpoint(), 1) << place.ShortDebugString();
  EXPECT_NE(place.stopped_by().find("w max > 1"), std::string::npos) << place.stopped_by();
  const auto w = window.value("w");
  EXPECT_GT(*std::ranges::max_element(w), 1);
  EXPECT_LT(*std::ranges::max_element(w), 1.5F) << "the first step for which it holds";
  // Of a value that no plan has it is said that it stops nowhere.
  set.mutable_breakpoints()->mutable_breakpoints(0)->set_predicate("nobody max > 1");
  window.send(set);
  const auto answers = window.answers();
  EXPECT_TRUE(std::ranges::any_of(answers, [](const auto& answer) {
    return answer.alert().code() == "breakpoint_without_value" &&
           answer.alert().message().find("nobody") != std::string::npos;
  }));
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, WatchedValuesAreReadWhileTheScriptRuns) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  window.look();
  window.begin();
  const auto idOf = [&](const std::string& name) {
    snapshot::Request fetch;
    fetch.mutable_fetch()->set_name(name);
    return window.ask(fetch).tensor().value();
  };
  snapshot::Request watch;
  for (const char* name : {"prediction", "w"}) watch.mutable_watch()->add_values(idOf(name));
  ASSERT_TRUE(window.ask(watch).has_position());
  window.step(1);  // the memory of the prediction is soon another value's
  const auto prediction = window.value("prediction"), w = window.value("w");
  const auto record = window.finish();
  ASSERT_EQ(record.statistics_size(), 2) << record.ShortDebugString();
  EXPECT_EQ(record.statistics(0).name(), "prediction");
  EXPECT_FLOAT_EQ(static_cast<float>(record.statistics(0).statistics().max()), *std::ranges::max_element(prediction));
  EXPECT_EQ(record.statistics(1).name(), "w");
  EXPECT_FLOAT_EQ(static_cast<float>(record.statistics(1).statistics().max()), *std::ranges::max_element(w));
  // Nothing holds it now, and every step has them, the position behind the last one too.
  std::int64_t last = -1;
  std::set<double> seen;
  for (const auto& answer : window.train(5)) {
    if (!answer.has_step()) continue;
    last = answer.step().step();
    ASSERT_EQ(answer.step().statistics_size(), 2);
    seen.insert(answer.step().statistics(1).statistics().max());
  }
  EXPECT_GE(seen.size(), 4u) << "the script updates w";
  snapshot::Request state;
  state.mutable_state();
  const auto position = window.ask(state).state().position();
  ASSERT_EQ(position.watched_size(), 2) << position.ShortDebugString();
  for (const auto& watched : position.watched()) {
    EXPECT_TRUE(watched.has_statistics());
    EXPECT_GE(watched.step(), last);
  }
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, ARunOfTheScriptStopsAtItsFirstNaN) {
  const TemporaryFolder folder;
  Script script(folder, 100);
  Window window(script.target());
  window.look();
  snapshot::Request set;
  auto& nan = *set.mutable_breakpoints()->add_breakpoints();
  nan.set_nan(true);
  nan.set_enabled(true);
  window.ask(set);
  const auto answers = window.train(1'000'000, true);
  const snapshot::Response& last = answers.back();
  ASSERT_TRUE(last.has_position()) << last.ShortDebugString();
  EXPECT_TRUE(last.position().in_step());
  EXPECT_NE(last.position().stopped_by().find("NaN in 'prediction'"), std::string::npos) << last.position().stopped_by();
  EXPECT_EQ(last.position().instruction(), 1);
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, WhatTheScriptDrivesIsRefusedByName) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  window.look();
  window.begin();
  window.step(2);
  const auto refused = [&](const snapshot::Request& request, const std::string& names) {
    const auto answer = window.ask(request);
    EXPECT_EQ(answer.error().code(), "unsupported") << answer.ShortDebugString();
    EXPECT_NE(answer.error().message().find(names), std::string::npos) << answer.error().message();
  };
  snapshot::Request request;
  request.mutable_open()->set_path("/tmp/other.onnx");
  refused(request, "/tmp/other.onnx");
  request.mutable_rewind();
  refused(request, "rewind");
  request.mutable_edit();
  refused(request, "edit");
  request.mutable_set_option()->set_name("lr");
  refused(request, "set_option");
  request.mutable_save_state();
  refused(request, "save_state");
  request.mutable_run_to()->set_instruction(0);
  refused(request, "instruction 0");
  request.mutable_step()->set_count(-1);
  refused(request, "instruction 1");
  auto& setting = *request.mutable_configure()->add_settings();
  setting.set_name("lr");
  setting.set_value("1");
  refused(request, "lr");
  EXPECT_EQ(window.step(0).instruction(), 2);  // nothing of it moved
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, ACancelLeavesTheScriptHeldAtItsNextGate) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  window.look();
  snapshot::Request train;
  train.mutable_train()->set_steps(1'000'000'000);
  const std::uint64_t running = window.send(train);
  snapshot::Request cancel;
  cancel.mutable_cancel()->set_id(running);
  window.send(cancel);
  // The run ends with an error; the answers of both come in any order.
  snapshot::Request state;
  state.mutable_state();
  window.send(state);
  const auto all = window.answers();
  const bool cancelled = std::ranges::any_of(all, [&](const auto& r) { return r.id() == running && r.has_error(); });
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(window.begin().in_step());
  window.leave();
  EXPECT_EQ(script.end(), 0);
}

TEST(Attach, ASecondWindowIsRefusedAndADeadScriptIsTheEndOfTheStream) {
  const TemporaryFolder folder;
  Script script(folder);
  Window window(script.target());
  window.look();
  const auto second = connectToScript(script.target());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another window"), std::string::npos) << second.error().message;
  script.kill();
  snapshot::Request plan;
  plan.mutable_plan();
  for (int i = 0; i < 10'000 && window.ask(plan).error().code() != "gone"; ++i) {
  }
  EXPECT_EQ(window.ask(plan).error().code(), "gone");
  (void)script.end();
  // Its socket is still there, and nobody listens: the place is taken over by the next program.
  EXPECT_FALSE(connectToScript(script.target()));
  Script next(folder);
  Window other(next.target());
  EXPECT_GT(other.look().instructions_size(), 0);
  other.leave();
  EXPECT_EQ(next.end(), 0);
}

TEST(Attach, AProcessWithoutASocketIsToldWhatToCall) {
  const auto none = connectToScript(std::to_string(getpid()));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("stepscope.attach()"), std::string::npos) << none.error().message;
  const auto nobody = connectToScript("/nowhere/at.sock");
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message.find("/nowhere/at.sock"), std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing
