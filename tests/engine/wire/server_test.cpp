// The worker under hostile input: truncated, oversized and random messages, requests in the wrong order.
#include "engine/wire/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "engine/snapshot/worker.pb.h"
#include "engine/wire/framing.h"
#include "engine/wire/stage_teller.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

// Everything is written first, then the stream ends: the answers come back in full.
struct Conversation {
  std::vector<snapshot::Response> responses;
  Status ended;
};

Conversation talk(const std::string& bytes, std::uint32_t largestReply = kLargestMessage) {
  std::signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  EXPECT_EQ(pipe(in), 0);
  EXPECT_EQ(pipe(out), 0);
  static const snapshot::MachineInfo machine;
  Conversation conversation;
  std::thread writer([&] {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = write(in[1], bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    close(in[1]);
  });
  std::thread reader([&] {
    while (true) {
      auto frame = readFrame(out[0]);
      if (!frame) break;
      snapshot::Response response;
      EXPECT_TRUE(response.ParseFromString(*frame)) << "an answer must parse";
      conversation.responses.push_back(std::move(response));
    }
  });
  conversation.ended = serveWorker(in[0], out[1], machine, largestReply);
  close(out[1]);
  writer.join();
  reader.join();
  close(in[0]);
  close(out[0]);
  return conversation;
}

std::string frame(const std::string& bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string prefix(4, '\0');
  for (int i = 0; i < 4; ++i) prefix[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xff);
  return prefix + bytes;
}

template <typename F>
std::string request(std::uint64_t id, F&& fill) {
  snapshot::Request r;
  r.set_id(id);
  fill(r);
  return frame(r.SerializeAsString());
}

std::string hello(std::uint64_t id) {
  return request(id, [](auto& r) { r.mutable_hello()->set_protocol(1); });
}

TEST(Worker, AnswersHelloAndEndsWithTheStream) {
  const Conversation c = talk(hello(1));
  EXPECT_TRUE(c.ended.has_value());
  ASSERT_EQ(c.responses.size(), 1u);
  EXPECT_TRUE(c.responses[0].done());
  EXPECT_EQ(c.responses[0].hello().protocol(), 1u);
}

TEST(Worker, RefusesAnotherProtocol) {
  const Conversation c = talk(request(1, [](auto& r) { r.mutable_hello()->set_protocol(9); }));
  ASSERT_EQ(c.responses.size(), 1u);
  EXPECT_EQ(c.responses[0].error().code(), "unsupported");
}

TEST(Worker, AnswersRequestsInTheWrongOrderWithErrors) {
  std::string bytes;
  bytes += request(1, [](auto& r) { r.mutable_build(); });
  bytes += request(2, [](auto& r) { r.mutable_step()->set_count(3); });
  bytes += request(3, [](auto& r) { r.mutable_fetch()->set_value(7); });
  bytes += request(4, [](auto& r) { r.mutable_rewind()->set_step(-1); });
  bytes += request(5, [](auto& r) { r.mutable_train()->set_steps(2); });
  const Conversation c = talk(bytes);
  ASSERT_EQ(c.responses.size(), 5u);
  for (const auto& response : c.responses) {
    EXPECT_TRUE(response.has_error());
    EXPECT_TRUE(response.done());
    EXPECT_NE(response.error().message().find("no model is open"), std::string::npos);
  }
}

TEST(Worker, AnswersGarbageAndGoesOn) {
  const Conversation c = talk(frame("\xff\xff\xff garbage") + hello(2));
  ASSERT_EQ(c.responses.size(), 2u);
  int errors = 0, hellos = 0;
  for (const auto& response : c.responses) {
    errors += response.has_error() && response.error().code() == "corrupt";
    hellos += response.has_hello();
  }
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(hellos, 1);
}

TEST(Worker, EndsWithAnErrorWhenTheStreamBreaks) {
  const std::string whole = hello(1);
  EXPECT_FALSE(talk(whole.substr(0, whole.size() - 1)).ended.has_value());
  EXPECT_FALSE(talk(whole.substr(0, 2)).ended.has_value());
  const Conversation oversized = talk(std::string("\xff\xff\xff\xff", 4) + "x");
  ASSERT_FALSE(oversized.ended.has_value());
  EXPECT_NE(oversized.ended.error().message.find("expected at most"), std::string::npos);
}

TEST(Worker, SurvivesDamagedConversations) {
  const auto model = testing::digits();
  std::string bytes = hello(1);
  bytes += request(2, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  bytes += request(3, [&](auto& r) {
    auto* setting = r.mutable_configure()->add_settings();
    setting->set_name("data");
    setting->set_value(model.data.string());
  });
  bytes += request(4, [](auto& r) { r.mutable_build(); });
  bytes += request(5, [](auto& r) { r.mutable_step()->set_count(5); });
  bytes += request(6, [](auto& r) { r.mutable_fetch()->set_value(3); });
  bytes += request(7, [](auto& r) { r.mutable_step()->set_count(-2); });
  const Conversation sound = talk(bytes);
  for (const auto& response : sound.responses)
    EXPECT_FALSE(response.has_error() && response.id() <= 5) << response.error().message();
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + round % 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    (void)talk(damaged);  // no signal, and it ends
  }
}

std::string openedAndBuilt();

// The client knows by it that the process is alive: it does not wait for what runs.
TEST(Worker, GreetsWhileItWorks) {
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_train()->set_steps(500); });
  bytes += hello(6);
  const Conversation c = talk(bytes);
  const auto place = [&c](std::uint64_t id) {
    return std::find_if(c.responses.begin(), c.responses.end(), [id](const auto& r) { return r.id() == id && r.done(); });
  };
  ASSERT_NE(place(6), c.responses.end());
  ASSERT_NE(place(5), c.responses.end());
  EXPECT_TRUE(place(6)->has_hello());
  EXPECT_TRUE(place(5)->has_step());
  EXPECT_LT(place(6) - c.responses.begin(), place(5) - c.responses.begin());
}

// Numbers at the ends of their range move to the ends of the step; a breakpoint's number has limits.
// Both ends of the client are gone: what it had asked for is not worked off.
TEST(Worker, EndsWhenNobodyReadsItsAnswers) {
  std::signal(SIGPIPE, SIG_IGN);
  const testing::TestModel model = testing::digits();
  std::string bytes = request(1, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  bytes += request(2, [&](auto& r) {
    auto& setting = *r.mutable_configure()->add_settings();
    setting.set_name("data");
    setting.set_value(model.data.string());
  });
  bytes += request(3, [](auto& r) { r.mutable_build(); });
  for (std::uint64_t id = 4; id < 8; ++id)  // each without an end
    bytes += request(id, [](auto& r) { r.mutable_train()->set_steps(std::int64_t{1} << 40); });
  int in[2], out[2];
  ASSERT_EQ(pipe(in), 0);
  ASSERT_EQ(pipe(out), 0);
  ASSERT_EQ(write(in[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(in[1]);
  std::thread reader([&] {
    for (int steps = 0; steps < 3;) {  // then it is gone, too
      auto frame = readFrame(out[0]);
      snapshot::Response response;
      if (!frame || !response.ParseFromString(*frame)) break;
      steps += response.has_step() || response.has_error() ? 1 : 0;
    }
    close(out[0]);
  });
  EXPECT_TRUE(serveWorker(in[0], out[1], {}).has_value());
  reader.join();
  close(in[0]);
  close(out[1]);
}

// Nothing can be computed in a process whose GPU is lost: the client is told of the steps that were finished and of the
// error, and the worker ends, so that another one finds the device again. Requests behind it have no answer.
TEST(Worker, EndsWhenItsDeviceIsLost) {
  const testing::TestModel model = testing::digits();
  for (const char* device : {"emulated:lose-device=390", "emulated:fail-launch=391"}) {
    std::string bytes = request(1, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
    bytes += request(2, [&](auto& r) {
      for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
               {"data", model.data.string()}, {"loss", model.loss}, {"device", device}}) {
        auto& setting = *r.mutable_configure()->add_settings();
        setting.set_name(name);
        setting.set_value(value);
      }
    });
    bytes += request(3, [](auto& r) { r.mutable_build(); });
    bytes += request(4, [](auto& r) { r.mutable_train()->set_steps(1000); });
    bytes += request(5, [](auto& r) { r.mutable_train()->set_steps(1); });
    const Conversation c = talk(bytes);
    ASSERT_FALSE(c.ended.has_value());
    EXPECT_EQ(c.ended.error().code, ErrorCode::kInternal);
    int steps = 0, errors = 0;
    for (const snapshot::Response& r : c.responses) {
      EXPECT_NE(r.id(), 5u) << r.ShortDebugString();
      steps += r.has_step() ? 1 : 0;
      if (!r.has_error()) continue;
      ++errors;
      EXPECT_EQ(r.id(), 4u);
      EXPECT_NE(r.error().message().find("launch 39"), std::string::npos) << r.error().message();
    }
    EXPECT_GT(steps, 0) << device;
    EXPECT_LT(steps, 1000) << device;
    EXPECT_EQ(errors, 1) << device;
  }
}

TEST(Worker, TellsWhichPassBeginsAndTheGraphsThatAreKept) {
  const testing::TestModel model = testing::digits();
  std::string bytes = request(1, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  bytes += request(2, [](auto& r) { r.mutable_build(); });
  const Conversation c = talk(bytes);
  std::vector<std::string> open;  // phases and passes that have begun
  int passes = 0, optional = 0;
  for (const snapshot::Response& r : c.responses) {
    if (!r.has_phase() || r.phase().name() == "materialise") continue;  // told when it is over
    if (r.phase().ns() == -1) {
      EXPECT_EQ(static_cast<int>(open.size()), r.phase().depth());
      open.push_back(r.phase().name());
      passes += r.phase().depth() > 0 ? 1 : 0;
      optional += r.phase().pass().name() == r.phase().name() ? 1 : 0;
    } else {
      while (static_cast<int>(open.size()) > r.phase().depth() + 1) open.pop_back();
      ASSERT_FALSE(open.empty()) << r.phase().name();
      if (r.phase().name() == open.back()) open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_GT(passes, optional);  // lowering has no option
  EXPECT_GT(optional, 0);
  EXPECT_TRUE(c.responses.back().has_build());
}

// A process that dies sends what waits first.
TEST(StageTeller, TellsBeforeTheProcessDies) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has handlers of its own";
#endif
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto die = [](int number) {
    StageTeller::waitBeforeDying();
    StageTeller teller([](const Stage& stage, const Registry&) {
      usleep(50'000);
      std::fprintf(stderr, "told %s.", stage.phase.c_str());
    });
    for (const char* phase : {"load", "gradient", "optimizer"})
      teller.tell({phase, std::make_shared<const Graph>()}, Registry::builtIn());
    std::raise(number);
  };
  for (const int number : {SIGSEGV, SIGABRT})
    EXPECT_EXIT(die(number), ::testing::KilledBySignal(number), "told load.told gradient.told optimizer.");
}

TEST(StageTeller, DropsWhatWaits) {
  std::atomic<int> told = 0;
  StageTeller teller([&](const Stage&, const Registry&) {
    ++told;
    usleep(1000);
  });
  const auto graph = std::make_shared<const Graph>();
  for (int i = 0; i < 100; ++i) teller.tell({"load", graph}, Registry::builtIn());
  teller.drop();
  const int then = told;
  EXPECT_LT(then, 100);
  EXPECT_EQ(graph.use_count(), 1);
  teller.tell({"load", graph}, Registry::builtIn());
  while (told == then) std::this_thread::yield();
}

TEST(Worker, TakesTheLargestNumbers) {
  constexpr int kMost = std::numeric_limits<std::int32_t>::max(), kLeast = std::numeric_limits<std::int32_t>::min();
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_step()->set_count(3); });
  bytes += request(6, [&](auto& r) { r.mutable_step()->set_count(kMost); });
  bytes += request(7, [&](auto& r) { r.mutable_step()->set_count(kLeast); });
  bytes += request(8, [&](auto& r) { r.mutable_breakpoints()->add_breakpoints()->set_id(kMost); });
  bytes += request(9, [&](auto& r) { r.mutable_breakpoints()->add_breakpoints()->set_id(kLeast); });
  const Conversation c = talk(bytes);
  const auto answer = [&c](std::uint64_t id) {
    for (const auto& response : c.responses)
      if (response.id() == id && response.done()) return response;
    return snapshot::Response();
  };
  EXPECT_EQ(answer(6).position().stopped_by(), "end of step") << answer(6).ShortDebugString();
  ASSERT_TRUE(answer(7).has_position()) << answer(7).ShortDebugString();
  EXPECT_EQ(answer(7).position().instruction(), 0);
  for (const std::uint64_t id : {8u, 9u})
    EXPECT_EQ(answer(id).error().code(), "invalid_argument") << answer(id).ShortDebugString();
}

std::string openedAndBuilt() {
  const auto model = testing::languageModel();
  std::string bytes = hello(1);
  bytes += request(2, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  bytes += request(3, [&](auto& r) {
    auto* setting = r.mutable_configure()->add_settings();
    setting->set_name("data");
    setting->set_value(model.data.string());
  });
  return bytes + request(4, [](auto& r) { r.mutable_build(); });
}

const snapshot::Response* answer(const Conversation& conversation, std::uint64_t id) {
  for (const auto& response : conversation.responses)
    if (response.id() == id && response.done()) return &response;
  ADD_FAILURE() << "no answer to request " << id;
  static const snapshot::Response none;
  return &none;
}

// The window puts the error beside the field of the setting.
TEST(Worker, SaysWhichSettingIsAtFault) {
  const auto model = testing::languageModel();
  std::string bytes = hello(1) + request(2, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  const auto configure = [&bytes](std::uint64_t id, std::vector<std::pair<std::string, std::string>> settings) {
    bytes += request(id, [&](auto& r) {
      for (const auto& [name, value] : settings) {
        auto* setting = r.mutable_configure()->add_settings();
        setting->set_name(name);
        setting->set_value(value);
      }
    });
  };
  configure(3, {{"lr", "fast"}});
  configure(4, {{"set", "recompute.budget=much"}});
  configure(5, {{"no such option", "1"}});
  configure(6, {{"momentum", "0.9"}, {"optimizer", "adamw"}});
  bytes += request(61, [](auto& r) { r.mutable_build(); });
  configure(7, {{"dim", "no_such_dimension=2"}});
  bytes += request(8, [](auto& r) { r.mutable_build(); });
  configure(9, {{"data", "/no/such/file.npz"}});
  bytes += request(10, [](auto& r) { r.mutable_build(); });
  const Conversation c = talk(bytes);
  const auto setting = [&c](std::uint64_t id) { return answer(c, id)->error().setting(); };
  EXPECT_EQ(setting(3), "lr");
  EXPECT_EQ(setting(4), "recompute.budget");
  EXPECT_EQ(setting(5), "no such option");
  // They are judged together, when they are set or built.
  EXPECT_EQ(answer(c, 6)->has_error() ? setting(6) : setting(61), "momentum") << answer(c, 61)->ShortDebugString();
  EXPECT_EQ(setting(8), "dim") << answer(c, 8)->ShortDebugString();
  EXPECT_TRUE(answer(c, 10)->has_error()) << answer(c, 10)->ShortDebugString();
  EXPECT_EQ(setting(10), "") << "a file is at fault: " << answer(c, 10)->ShortDebugString();
}

TEST(Worker, JudgesRecomputeAndAppliesIt) {
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_recompute(); });
  bytes += request(6, [](auto& r) { r.mutable_train()->set_steps(2); });
  bytes += request(7, [](auto& r) {
    r.mutable_recompute()->set_what_if(true);
    r.mutable_recompute()->set_plan("block:1:-1");
    r.mutable_recompute()->set_budget(1);
  });
  bytes += request(8, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.plan");
    r.mutable_set_option()->set_value("block:1:-1");
    auto* more = r.mutable_set_option()->add_more();
    more->set_name("recompute.budget");
    more->set_value("1");
  });
  bytes += request(9, [](auto& r) { r.mutable_train()->set_steps(2); });
  bytes += request(10, [](auto& r) { r.mutable_recompute(); });
  const Conversation c = talk(bytes);
  const auto& before = answer(c, 5)->recompute();
  EXPECT_GT(before.patterns_size(), 0);
  EXPECT_FALSE(before.measured());
  const auto& asked = answer(c, 7)->recompute();
  EXPECT_TRUE(asked.measured());
  EXPECT_LT(asked.what_if().peak_bytes(), asked.plain_peak_bytes());
  EXPECT_GT(asked.what_if().step_ns(), asked.plain_step_ns());
  const auto& options = answer(c, 8)->options();
  EXPECT_TRUE(options.proof().equal()) << options.proof().unavailable() << options.proof().worst();
  EXPECT_EQ(options.proof().change(), "recompute.budget = 1, recompute.plan = block:1:-1");
  const auto& after = answer(c, 10)->recompute();
  EXPECT_EQ(after.present_peak_bytes(), asked.what_if().peak_bytes());
  EXPECT_EQ(after.runs_size(), 2);
}

// The override of a study is set as the whole list, so that setting what was there before takes it back.
TEST(Worker, StudiesPrecisionAndSetsAnOverride) {
  const auto set = [](std::uint64_t id, const char* name, const char* value) {
    return request(id, [&](auto& r) {
      r.mutable_set_option()->set_name(name);
      r.mutable_set_option()->set_value(value);
    });
  };
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_begin_step(); });
  bytes += request(6, [](auto& r) { r.mutable_run_to()->set_instruction(5); });
  bytes += request(7, [](auto& r) {
    r.mutable_precision()->set_measured(1);
    r.mutable_precision()->set_timed(1);
  });
  bytes += set(8, "precision", "bf16") + set(9, "precision.force", "^MatMul$:fp32") + set(10, "precision.force", "");
  bytes += request(11, [](auto& r) { r.mutable_precision()->set_precision("b16"); });
  bytes += set(12, "precision", "fp32") + request(13, [](auto& r) { r.mutable_finish_step(); });
  const Conversation c = talk(bytes);
  const auto& report = answer(c, 7)->precision();
  EXPECT_EQ(report.precision(), "bf16");
  EXPECT_GT(report.classes_size(), 0);
  EXPECT_GT(report.gradients_size(), 0);
  EXPECT_EQ(report.cost().steps(), 1);
  const auto& low = answer(c, 8)->options();
  EXPECT_FALSE(low.waits()) << "it is applied in the middle of the step";
  EXPECT_GT(low.proof().values(), 0);
  EXPECT_FALSE(low.proof().equal());
  const auto valueOf = [](const snapshot::OptionList& list) {
    for (const auto& o : list.options())
      if (o.name() == "precision.force") return o.value();
    return std::string("none");
  };
  EXPECT_EQ(valueOf(answer(c, 9)->options()), "^MatMul$:fp32");
  EXPECT_EQ(valueOf(answer(c, 10)->options()), "");
  EXPECT_EQ(answer(c, 11)->error().message(), "precision 'b16': unknown; expected fp32, bf16 or fp16");
  EXPECT_FALSE(answer(c, 12)->options().waits());
  EXPECT_TRUE(answer(c, 13)->has_step());
}

TEST(Worker, AnswersWithAnErrorWhatIsTooLargeToSend) {
  std::string bytes = openedAndBuilt();
  bytes += request(5, [](auto& r) { r.mutable_graph(); });
  bytes += request(6, [](auto& r) { r.mutable_train()->set_steps(2); });
  const Conversation whole = talk(bytes);
  ASSERT_TRUE(answer(whole, 4)->has_build()) << answer(whole, 4)->ShortDebugString();
  const std::size_t size = answer(whole, 5)->ByteSizeLong();
  std::size_t next =
      0;  // of what comes after the answers to requests 1 to 4; graphs as events are left out where they do not fit
  for (const auto& response : whole.responses)
    if (&response != answer(whole, 5) && !response.has_graph()) next = std::max(next, response.ByteSizeLong());
  ASSERT_GT(size, next) << "the graph must be the largest reply, so that only it is refused";
  const Conversation c = talk(bytes, static_cast<std::uint32_t>(size - 1));
  const auto& error = answer(c, 5)->error();
  EXPECT_EQ(error.code(), "limit_exceeded");
  EXPECT_EQ(error.message(),
            "reply 'graph': " + std::to_string(size) + " bytes; expected at most " + std::to_string(size - 1));
  EXPECT_EQ(std::count_if(c.responses.begin(), c.responses.end(), [](const auto& r) { return r.id() == 5; }), 1);
  EXPECT_TRUE(answer(c, 6)->has_step()) << "the worker goes on";
}

// All requests may be written, and the stream closed, before the first is answered.
TEST(Worker, ServesWhatWasAskedBeforeTheStreamEnded) {
  for (int i = 0; i < 5; ++i) {
    const Conversation c = talk(openedAndBuilt() + request(5, [](auto& r) { r.mutable_train()->set_steps(20); }));
    EXPECT_TRUE(answer(c, 4)->has_build()) << answer(c, 4)->ShortDebugString();
    EXPECT_TRUE(answer(c, 5)->has_step()) << answer(c, 5)->ShortDebugString();
  }
}

TEST(Worker, EndsARunWhoseRecordsAreTooLargeToSend) {
  std::string bytes = openedAndBuilt() + request(5, [](auto& r) {
                        r.mutable_train()->set_steps(3);
                        r.mutable_train()->set_record(true);
                      });
  bytes += request(6, [](auto& r) { r.mutable_state(); });
  const Conversation c = talk(bytes, 300);
  EXPECT_EQ(answer(c, 2)->error().code(), "limit_exceeded");
  EXPECT_EQ(answer(c, 4)->error().code(), "limit_exceeded");
  std::vector<snapshot::Response> run;
  for (const auto& response : c.responses)
    if (response.id() == 5) run.push_back(response);
  ASSERT_EQ(run.size(), 1u) << "nothing follows the answer that ends a request";
  EXPECT_TRUE(run[0].done());
  EXPECT_EQ(run[0].error().code(), "limit_exceeded");
  EXPECT_TRUE(answer(c, 6)->has_state());
  EXPECT_TRUE(std::any_of(c.responses.begin(), c.responses.end(),
                          [](const auto& r) { return r.id() == 0 && r.has_alert() && r.alert().code() == "event_lost"; }));
}

bool hasPhase(const snapshot::BuildReply& reply, std::string_view name) {
  return std::any_of(reply.phases().begin(), reply.phases().end(), [&](const auto& span) { return span.name() == name; });
}

bool hasStage(const snapshot::BuildReply& reply, std::string_view name) {
  return std::find(reply.stages().begin(), reply.stages().end(), name) != reply.stages().end();
}

TEST(Worker, TellsEveryBuildBeforeTheAnswerThatItBelongsTo) {
  const auto set = [](std::uint64_t id, const char* value) {
    return request(id, [&](auto& r) {
      r.mutable_set_option()->set_name("recompute.plan");
      r.mutable_set_option()->set_value(value);
    });
  };
  std::string bytes = openedAndBuilt();
  bytes += set(5, "block:1:-1");                                              // between steps: at once
  bytes += request(6, [](auto& r) { r.mutable_begin_step(); }) + set(7, "");  // in a step: at once too
  bytes += request(8, [](auto& r) { r.mutable_finish_step(); });
  bytes += request(9, [](auto& r) { r.mutable_train()->set_steps(1); });
  const Conversation c = talk(bytes);
  std::vector<std::pair<std::uint64_t, const snapshot::BuildReply*>> told;  // with the request that was answered next
  const snapshot::BuildReply* waiting = nullptr;
  for (const auto& response : c.responses) {
    if (response.id() == 0 && response.has_build()) waiting = &response.build();
    if (response.id() != 0 && waiting) told.emplace_back(response.id(), std::exchange(waiting, nullptr));
  }
  const auto& first = answer(c, 4)->build();
  EXPECT_TRUE(hasPhase(first, "load") && hasPhase(first, "bind"));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].first, 5u);
  EXPECT_EQ(told[1].first, 7u);
  for (const auto& [id, reply] : told) {
    EXPECT_FALSE(hasPhase(*reply, "load")) << "was not read again";
    EXPECT_TRUE(hasPhase(*reply, "attach loss") && hasPhase(*reply, "bind"));
    EXPECT_EQ(std::count_if(reply->phases().begin(), reply->phases().end(),
                            [](const auto& span) { return span.name() == "bind"; }),
              1);
    for (int i = 0; i < reply->phases_size(); ++i)
      EXPECT_LT(reply->phases(i).parent(), i) << "parents count within the build";
    EXPECT_TRUE(hasStage(*reply, "load") && hasStage(*reply, "specialise"));
  }
  EXPECT_TRUE(hasStage(*told[0].second, "recompute"));
  EXPECT_FALSE(hasStage(*told[1].second, "recompute")) << "a graph of the build before";
}

TEST(Worker, AnswersWrongQuestionsAboutRecompute) {
  const std::vector<std::pair<const char*, std::int64_t>> wrong{{"Gelu+:2:1", 0}, {"Nothing+:1:-1", 0}, {",", 0}, {"", -5}};
  std::string bytes = request(9, [](auto& r) { r.mutable_recompute(); }) + openedAndBuilt();
  for (std::size_t i = 0; i < wrong.size(); ++i)
    bytes += request(10 + i, [&](auto& r) {
      r.mutable_recompute()->set_what_if(true);
      r.mutable_recompute()->set_plan(wrong[i].first);
      r.mutable_recompute()->set_budget(wrong[i].second);
    });
  // Of several settings none is made when one of them is wrong.
  bytes += request(20, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.budget");
    r.mutable_set_option()->set_value("1");
    auto* more = r.mutable_set_option()->add_more();
    more->set_name("recompute.plan");
    more->set_value("nonsense");
  });
  bytes += request(21, [](auto& r) { r.mutable_options(); });
  bytes += request(22, [](auto& r) { r.mutable_train()->set_steps(1); });
  const Conversation c = talk(bytes);
  EXPECT_NE(answer(c, 9)->error().message().find("no model is open"), std::string::npos);
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_TRUE(answer(c, 10 + i)->has_error()) << wrong[i].first;
  EXPECT_EQ(answer(c, 20)->error().code(), "invalid_argument");
  for (const auto& option : answer(c, 21)->options().options())
    if (option.name().starts_with("recompute.")) EXPECT_EQ(option.value(), option.default_value()) << option.name();
  EXPECT_TRUE(answer(c, 22)->has_step());
}

TEST(Worker, SurvivesDamagedQuestionsAboutRecompute) {
  std::string questions;
  questions += request(5, [](auto& r) {
    r.mutable_recompute()->set_what_if(true);
    r.mutable_recompute()->set_plan("block:1:2,Gelu+:1:-1");
    r.mutable_recompute()->set_budget(100'000);
  });
  questions += request(6, [](auto& r) {
    r.mutable_set_option()->set_name("recompute.plan");
    r.mutable_set_option()->set_value("block:1:2");
    r.mutable_set_option()->add_more()->set_name("memory.inplace");
  });
  std::mt19937 random(11);
  std::string bytes = openedAndBuilt();
  for (int round = 0; round < 40; ++round) {
    std::string damaged = questions;
    // Lengths stay, so that every message is read.
    for (int k = 0; k < 1 + round % 3; ++k) {
      const std::size_t at = random() % damaged.size();
      if (damaged[at] != '\0') damaged[at] = static_cast<char>(random());
    }
    bytes += damaged;
  }
  (void)talk(bytes);  // no signal, and it ends
}

}  // namespace
}  // namespace stepscope
