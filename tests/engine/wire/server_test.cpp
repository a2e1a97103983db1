// The worker under hostile input: truncated, oversized and random messages, requests in the wrong order, clients and devices
// that are gone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "tests/engine/wire/conversation.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::answer;
using testing::Conversation;
using testing::frame;
using testing::hello;
using testing::openedAndBuilt;
using testing::request;
using testing::talk;

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

// All requests may be written, and the stream closed, before the first is answered.
TEST(Worker, ServesWhatWasAskedBeforeTheStreamEnded) {
  for (int i = 0; i < 5; ++i) {
    const Conversation c = talk(openedAndBuilt() + request(5, [](auto& r) { r.mutable_train()->set_steps(20); }));
    EXPECT_TRUE(answer(c, 4)->has_build()) << answer(c, 4)->ShortDebugString();
    EXPECT_TRUE(answer(c, 5)->has_step()) << answer(c, 5)->ShortDebugString();
  }
}

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

// Numbers at the ends of their range move to the ends of the step; a breakpoint's number has limits.
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

}  // namespace
}  // namespace stepscope
