// Cancels over the wire of what takes long: a load and a build end between their parts, and what was there before stands.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/snapshot/worker.pb.h"
#include "tests/bench/chain_model.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/wire/live_worker.h"

namespace stepscope {
namespace {

using testing::LiveWorker;

class CancelRequests : public ::testing::Test {
 protected:
  CancelRequests() : chain_(folder_.write("chain.onnx", "")) { writeChain(chain_, 3'000); }

  // The last answer to a request that is cancelled as soon as `phase` begins; `after` it no phase does.
  snapshot::Response cancelledIn(LiveWorker& worker, const std::string& phase,
                                 const std::function<void(snapshot::Request&)>& fill) {
    const auto id = worker.send(fill);
    bool cancelled = false;
    for (;;) {
      snapshot::Response r = worker.next();
      const bool begins = r.id() == 0 && r.has_phase() && r.phase().ns() == -1 && r.phase().depth() == 0;
      if (begins && !cancelled && r.phase().name() == phase) {
        worker.send([&](auto& request) { request.mutable_cancel()->set_id(id); });
        cancelled = true;
      }
      if (r.id() == id && r.done()) {
        EXPECT_TRUE(cancelled) << "phase " << phase << " did not begin";
        return r;
      }
    }
  }

  testing::TemporaryFolder folder_;
  const std::filesystem::path chain_;
};

TEST_F(CancelRequests, ALoadEnds) {
  LiveWorker worker;
  worker.openDigits();
  const auto load = [&](auto& r) { r.mutable_open()->set_path(chain_.string()); };
  const snapshot::Response response = cancelledIn(worker, "load", load);
  EXPECT_EQ(response.error().code(), "cancelled") << response.ShortDebugString().substr(0, 200);
  // What was open still is, and the cancel is spent.
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_state(); }).state().built());
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_train()->set_steps(1); }).has_step());
  EXPECT_TRUE(worker.open(chain_).has_model());
}

TEST_F(CancelRequests, ASetUpLeavesPlanAndPlace) {
  LiveWorker worker;
  ASSERT_TRUE(worker.open(chain_).has_model());
  ASSERT_TRUE(worker.configure({{"threads", "1"}}).has_options());
  const auto build = [](auto& r) { r.mutable_build(); };
  ASSERT_TRUE(worker.ask(build).has_build());
  worker.ask([](auto& r) { r.mutable_begin_step(); });
  worker.ask([](auto& r) { r.mutable_run_to()->set_instruction(7); });
  const auto state = [&] { return worker.ask([](auto& r) { r.mutable_state(); }).state(); };
  ASSERT_EQ(state().position().instruction(), 7);
  ASSERT_TRUE(worker.configure({{"threads", "1"}, {"accumulate", "2"}}).has_options());
  const snapshot::Response response = cancelledIn(worker, "gradient", build);
  EXPECT_EQ(response.error().code(), "cancelled") << response.ShortDebugString().substr(0, 200);
  EXPECT_TRUE(state().built());
  EXPECT_TRUE(state().position().in_step());
  EXPECT_EQ(state().position().instruction(), 7);
  EXPECT_FALSE(worker.configure({{"threads", "1"}}).options().waits());
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_finish_step(); }).has_step());
}

// The first build of a model: there is nothing yet, and another one can be asked for.
TEST_F(CancelRequests, AFirstBuildLeavesNone) {
  LiveWorker worker;
  ASSERT_TRUE(worker.open(chain_).has_model());
  const auto build = [](auto& r) { r.mutable_build(); };
  EXPECT_EQ(cancelledIn(worker, "specialise", build).error().code(), "cancelled");
  EXPECT_FALSE(worker.ask([](auto& r) { r.mutable_state(); }).state().built());
  EXPECT_TRUE(worker.ask(build).has_build());
}

}  // namespace
}  // namespace stepscope
