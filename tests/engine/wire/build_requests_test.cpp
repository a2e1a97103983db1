// Builds over the wire: what is told of their phases, passes and graphs, and which setting is at fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/wire/conversation.h"
#include "tests/engine/wire/live_worker.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::answer;
using testing::Conversation;
using testing::hello;
using testing::openedAndBuilt;
using testing::request;
using testing::talk;

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

// What stands in memory counts: a larger model that the worker had before does not.
TEST(Worker, PhasesTellOfTheMemoryOfTheirModel) {
#ifdef SS_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps memory that was given back";
#endif
  const testing::TemporaryFolder folder;
  onnx::ModelProto model = testing::acmeModel("large");
  auto& graph = *model.mutable_graph();
  testing::addInput(graph, "x", {1, 2048});
  auto* w = graph.add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  for (int i = 0; i < 2; ++i) w->add_dims(2048);
  testing::setExternal(*w, "not_there.bin");
  testing::addNode(graph, "MatMul", {"x", "w"}, {"y"}, "matmul");
  auto* keepDims = testing::addNode(graph, "ReduceSum", {"y"}, {"loss"}, "sum")->add_attribute();
  keepDims->set_name("keepdims");
  keepDims->set_type(onnx::AttributeProto::INT);
  testing::addOutput(graph, "loss");
  const auto path = folder.write("large.onnx", model.SerializeAsString());
  testing::LiveWorker worker;
  // Trained, so that parameters, moments and gradient were touched.
  const auto residentBytes = [&] {
    EXPECT_TRUE(worker.configure({{"optimizer", "adamw"}, {"threads", "1"}}).has_options());
    const auto built = worker.ask([](auto& r) { r.mutable_build(); });
    EXPECT_TRUE(built.has_build()) << built.ShortDebugString();
    EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_train()->set_steps(1); }).has_step());
    const auto again = worker.ask([](auto& r) { r.mutable_build(); });
    return again.has_build() ? again.build().phases(again.build().phases_size() - 1).peak_bytes() : 0;
  };
  constexpr std::int64_t kWeights = 2048 * 2048 * 4;
  const std::int64_t before = [&] {
    worker.openDigits();
    return residentBytes();
  }();
  EXPECT_TRUE(worker
                  .ask([&](auto& r) {
                    r.mutable_open()->set_path(path.string());
                    r.mutable_open()->set_missing_weights("random");
                  })
                  .has_model());
  const std::int64_t large = residentBytes();
  worker.openDigits();
  const std::int64_t after = residentBytes();
  EXPECT_GT(large - before, 3 * kWeights) << "parameters and both moments";
  EXPECT_LT(after - before, kWeights) << before << ", then " << large << ", then " << after;
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

}  // namespace
}  // namespace stepscope
