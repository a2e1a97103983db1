// Collectives that a device runs, and that do not end: they are given up, with the reason.
#include "engine/comm/device_watch.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "tests/engine/comm/rank_threads.h"

namespace stepscope::testing {
namespace {

// Nothing that is put there ever ends.
class Stuck final : public DeviceRanks {
 public:
  Device& device() override { return cpuDevice(); }
  std::string name() const override { return "stuck"; }
  Status allReduce(std::span<const TensorView>, std::span<const TensorView>, bool, StreamId) override { return {}; }
  Status allGather(std::span<const TensorView>, std::span<const TensorView>, StreamId) override { return {}; }
  Status reduceScatter(std::span<const TensorView>, std::span<const TensorView>, bool, StreamId) override { return {}; }
  Status reduce(const TensorView&, const TensorView&, int, StreamId) override { return {}; }
  Status broadcast(std::span<const TensorView>, int, StreamId) override { return {}; }
  Status allToAll(const TensorView&, const TensorView&, StreamId) override { return {}; }
  Status send(const TensorView&, int, StreamId) override { return {}; }
  Status receive(const TensorView&, int, StreamId) override { return {}; }
  Status health() const override { return sick_ ? fail(ErrorCode::kIo, "a cable was pulled") : Status(); }
  void abort() override { aborted_ = true; }

  // As a wait for the device does: until it is given up.
  bool waitUntilAborted() const {
    for (int i = 0; i < 2000 && !aborted_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return aborted_;
  }
  std::atomic<bool> sick_ = false;

 private:
  std::atomic<bool> aborted_ = false;
};

constexpr CollectivePlace kPlace{.node = "gradients", .step = 4, .stream = 0};

// What rank 0 is told when it waits for its device, after both have put a collective there.
std::string told(double timeout, const std::function<void(Communicator&, Stuck&)>& rank0,
                 const std::function<void(Communicator&, Stuck&)>& rank1) {
  std::string text;
  onRanks(
      2,
      [&](Communicator& comm) -> Status {
        auto made = std::make_unique<Stuck>();
        Stuck& ranks = *made;
        comm.moveBy(std::move(made));
        Tensor tensor(DType::kF32, {3});
        const TensorView view = tensor.view();
        SS_TRY(comm.allReduce(kPlace, std::span(&view, 1), std::span(&view, 1), true));
        (comm.rank() == 0 ? rank0 : rank1)(comm, ranks);
        const Status ended = comm.deviceEnded();
        if (comm.rank() == 0) text = ended ? "no error" : ended.error().message;
        return {};
      },
      timeout);
  return text;
}

void waits(Communicator&, Stuck& ranks) { EXPECT_TRUE(ranks.waitUntilAborted()); }
void goes(Communicator& comm, Stuck&) { comm.end(""); }

TEST(DeviceWatch, NamesTheRankThatIsGone) {
  EXPECT_EQ(told(20, waits, goes),
            "rank 1: its connection was closed; expected it at AllReduce 0 'gradients' of step 4: float32 [3] (12 bytes)");
}

TEST(DeviceWatch, TellsWhatTheLibraryTells) {
  const std::string text = told(
      20,
      [](Communicator& comm, Stuck& ranks) {
        ranks.sick_ = true;
        waits(comm, ranks);
      },
      waits);
  EXPECT_NE(text.find("'gradients' of step 4"), std::string::npos) << text;
  EXPECT_NE(text.find("a cable was pulled"), std::string::npos) << text;
}

TEST(DeviceWatch, GivesUpAfterTheTimeout) {
  const std::string text = told(0.2, waits, [](Communicator& comm, Stuck& ranks) {
    waits(comm, ranks);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // rank 0 finds out by itself, not by the end of this one
  });
  EXPECT_NE(text.find("it did not end within 0 s"), std::string::npos) << text;
}

TEST(DeviceWatch, GivesUpWhenTold) {
  const std::string text = told(
      20,
      [](Communicator& comm, Stuck& ranks) {
        comm.giveUpAt(rankClockNs());
        waits(comm, ranks);
      },
      waits);
  EXPECT_NE(text.find("told to end while it runs"), std::string::npos) << text;
}

TEST(DeviceWatch, HasNothingAgainstARankThatEndsWhenAllIsDone) {
  std::promise<void> done;  // a rank that went before would be gone in the middle of what rank 0 waits for
  const std::string text = told(
      20,
      [&](Communicator& comm, Stuck&) {
        EXPECT_TRUE(comm.deviceEnded().has_value());
        done.set_value();
      },
      [&](Communicator& comm, Stuck&) {
        EXPECT_TRUE(comm.deviceEnded().has_value());
        done.get_future().wait();
      });
  EXPECT_EQ(text, "no error");
}

}  // namespace
}  // namespace stepscope::testing
