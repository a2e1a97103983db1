// Every collective, with every number of ranks up to five, and what becomes of ranks that disagree, hang or end.
#include "engine/comm/communicator.h"

#include <atomic>
#include <chrono>
#include <cstring>

#include "engine/comm/collective_bytes.h"
#include "engine/comm/socket_transport.h"
#include "kernels/rank_part.h"
#include "tests/engine/comm/rank_threads.h"

namespace stepscope::testing {
namespace {

// What element i of rank r holds; small numbers are exact in every type.
template <typename T>
Tensor ofRank(int rank, std::int64_t count) {
  Tensor tensor(DTypeOf<T>::value, {count});
  for (std::int64_t i = 0; i < count; ++i)
    tensor.as<T>()[static_cast<std::size_t>(i)] = static_cast<T>((rank + 1) * (i % 7));
  return tensor;
}
template <typename T>
double at(const Tensor& tensor, std::int64_t i) {
  return elementAsDouble(tensor.view(), i);
}

class Collectives : public ::testing::TestWithParam<int> {};

template <typename T>
void reducesAll(int ranks) {
  // More than a piece of every rank, and extents that no number of ranks divides.
  const std::int64_t counts[] = {3, 0, 1'300'003};
  const double sum = ranks * (ranks + 1) / 2.0;
  expectAll(onRanks(ranks, [&](Communicator& comm) -> Status {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
    for (const std::int64_t count : counts) {
      tensors.push_back(ofRank<T>(comm.rank(), count));
      views.push_back(tensors.back().view());
    }
    SS_TRY(comm.allReduce({"gradients", 4}, views, views, false));
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::int64_t i = 0; i < counts[t]; ++i)
        if (at<T>(tensors[t], i) != sum * static_cast<double>(i % 7))
          return invalid("element " + std::to_string(i) + " is " + std::to_string(at<T>(tensors[t], i)));
    return {};
  }));
}

TEST_P(Collectives, AllReduceAddsTensorsOfEveryType) {
  reducesAll<float>(GetParam());
  reducesAll<double>(GetParam());
  reducesAll<Float16>(GetParam());
  reducesAll<BFloat16>(GetParam());
  reducesAll<std::int32_t>(GetParam());
  reducesAll<std::uint8_t>(GetParam());
}

TEST_P(Collectives, OthersMoveWhatTheySay) {
  const int ranks = GetParam();
  expectAll(onRanks(ranks, [&](Communicator& comm) -> Status {
    const auto is = [](const Tensor& tensor, std::int64_t i, double expected) -> Status {
      if (elementAsDouble(tensor.view(), i) == expected) return {};
      return invalid("element " + std::to_string(i) + ": " + std::to_string(elementAsDouble(tensor.view(), i)) +
                     "; expected " + std::to_string(expected));
    };
    constexpr std::int64_t kCount = 5;
    const Tensor mine = ofRank<std::int64_t>(comm.rank(), kCount);
    Tensor all(DType::kI64, {kCount * ranks}), part(DType::kI64, {kCount}), turned(DType::kI64, {kCount * ranks});
    const TensorView mineView = mine.view(), allView = all.view(), partView = part.view();
    SS_TRY(comm.allGather({"gather", 0}, std::span(&mineView, 1), std::span(&allView, 1)));
    for (int r = 0; r < ranks; ++r)
      for (std::int64_t i = 0; i < kCount; ++i) SS_TRY(is(all, r * kCount + i, static_cast<double>((r + 1) * i)));
    SS_TRY(comm.reduceScatter({"scatter", 0}, std::span(&allView, 1), std::span(&partView, 1), false));
    for (std::int64_t i = 0; i < kCount; ++i) SS_TRY(is(part, i, static_cast<double>(ranks * (comm.rank() + 1) * i)));
    for (std::int64_t i = 0; i < all.elements(); ++i)
      all.as<std::int64_t>()[static_cast<std::size_t>(i)] = comm.rank() * 100 + i / kCount;
    SS_TRY(comm.allToAll({"turn", 0}, all.view(), turned.view()));
    for (int r = 0; r < ranks; ++r) SS_TRY(is(turned, r * kCount, r * 100 + comm.rank()));
    Tensor bools(DType::kBool, {4});
    bools.as<bool>()[2] = comm.rank() == ranks - 1;
    const TensorView view = bools.view();
    SS_TRY(comm.broadcast({"tell", 0}, std::span(&view, 1), ranks - 1));
    SS_TRY(is(bools, 2, 1));
    if (ranks > 1 && comm.rank() == 0) SS_TRY(comm.send({"pair", 0}, mine.view(), 1));
    if (comm.rank() == 1) {
      SS_TRY(comm.receive({"pair", 0}, part.view(), 0));
      SS_TRY(is(part, 3, 3));
    }
    if (comm.total().count < 4) return invalid("not counted");
    return {};
  }));
}

template <typename T>
void reducesToEveryRoot(int ranks) {
  constexpr std::int64_t kCount = 1'300'003;  // more than a piece
  const double sum = ranks * (ranks + 1) / 2.0;
  expectAll(onRanks(ranks, [&](Communicator& comm) -> Status {
    for (int root = 0; root < ranks; ++root) {
      const Tensor mine = ofRank<T>(comm.rank(), root == 0 ? kCount : 5);
      Tensor out(DTypeOf<T>::value, mine.dims());
      const std::int64_t before = comm.total().sentBytes;
      SS_TRY(comm.reduce({"r", 0}, mine.view(), comm.rank() == root ? out.view() : TensorView(), root));
      const std::int64_t sent = comm.total().sentBytes - before, elements[] = {mine.elements()};
      if (sent != collectiveSentBytes("Reduce", elements, mine.dtype(), comm.rank(), ranks, {.to = root}))
        return invalid("sent " + std::to_string(sent));
      for (std::int64_t i = 0; comm.rank() == root && i < mine.elements(); ++i)
        if (at<T>(out, i) != sum * static_cast<double>(i % 7)) return invalid("element " + std::to_string(i));
    }
    return {};
  }));
}

TEST_P(Collectives, ReduceAddsForOneRankAlone) {
  reducesToEveryRoot<float>(GetParam());
  reducesToEveryRoot<double>(GetParam());
  reducesToEveryRoot<Float16>(GetParam());
  reducesToEveryRoot<BFloat16>(GetParam());
  reducesToEveryRoot<std::int32_t>(GetParam());
  reducesToEveryRoot<std::uint8_t>(GetParam());
}

// Of what only moves, every type arrives bit by bit, and as many bytes are sent as plans say.
TEST_P(Collectives, WhatMovesKeepsTheBitsOfEveryType) {
  const int ranks = GetParam();
  expectAll(onRanks(ranks, [&](Communicator& comm) -> Status {
    for (int number = 1; number < 32; ++number) {
      const auto dtype = dtypeFromOnnx(number);
      if (!dtype || *dtype == DType::kUndefined || *dtype == DType::kString) continue;
      const auto fill = [&](int rank) {
        Tensor tensor(*dtype, {12 * ranks});
        for (std::size_t i = 0; i < tensor.bytes(); ++i)
          static_cast<std::uint8_t*>(tensor.data())[i] = static_cast<std::uint8_t>(7 * rank + static_cast<int>(i));
        return tensor;
      };
      Tensor mine = fill(comm.rank()), turned(*dtype, {12 * ranks});
      const std::int64_t elements[] = {12 * ranks};
      const auto sends = [&](const char* op, CollectiveEnds ends, const std::function<Status()>& run) -> Status {
        const std::int64_t before = comm.total().sentBytes;
        SS_TRY(run());
        const std::int64_t sent = comm.total().sentBytes - before;
        if (sent == collectiveSentBytes(op, elements, *dtype, comm.rank(), ranks, ends)) return {};
        return invalid(std::string(op) + " sent " + std::to_string(sent));
      };
      SS_TRY(sends("AllToAll", {}, [&] { return comm.allToAll({"turn", 0}, mine.view(), turned.view()); }));
      const std::size_t part = mine.bytes() / static_cast<std::size_t>(ranks);
      for (int r = 0; r < ranks; ++r)
        if (std::memcmp(static_cast<const std::byte*>(turned.data()) + part * static_cast<std::size_t>(r),
                        static_cast<const std::byte*>(fill(r).data()) + part * static_cast<std::size_t>(comm.rank()),
                        part) != 0)
          return invalid(std::string(dtypeName(*dtype)) + ": part of rank " + std::to_string(r));
      if (ranks > 1) {
        const int to = ranks - 1;
        SS_TRY(sends("Recv", {0, to}, [&]() -> Status {
          if (comm.rank() == 0) return comm.send({"pair", 0}, mine.view(), to);
          return comm.rank() == to ? comm.receive({"pair", 0}, turned.view(), 0) : Status();
        }));
        if (comm.rank() == to && std::memcmp(turned.data(), fill(0).data(), mine.bytes()) != 0)
          return invalid(std::string(dtypeName(*dtype)) + ": what was sent");
      }
      SS_TRY(sends("Broadcast", {.from = ranks - 1}, [&] {
        const TensorView view = mine.view();
        return comm.broadcast({"tell", 0}, std::span(&view, 1), ranks - 1);
      }));
      if (std::memcmp(mine.data(), fill(ranks - 1).data(), mine.bytes()) != 0)
        return invalid(std::string(dtypeName(*dtype)) + ": what was told");
    }
    return {};
  }));
}

// Extents that are no multiple of the number of ranks, tensors smaller than it, and more than is sent at a time.
TEST_P(Collectives, PartsOfSeveralTensorsComeTogetherAgain) {
  const int ranks = GetParam();
  expectAll(onRanks(ranks, [&](Communicator& comm) -> Status {
    const std::vector<std::int64_t> counts{7, 1, 700'001, 0, 12};
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
      std::vector<Tensor> whole, parts, again;
      std::vector<TensorView> wholeViews, partViews, againViews;
      for (const std::int64_t count : counts) {
        whole.emplace_back(dtype, Dims{count});
        parts.emplace_back(dtype, Dims{partLength(count, ranks)});
        again.emplace_back(dtype, Dims{count});
        for (std::int64_t i = 0; i < count; ++i)
          storeElement(whole.back().view(), i, static_cast<double>(i % 13 * (comm.rank() + 1)));
        wholeViews.push_back(whole.back().view());
        partViews.push_back(parts.back().view());
        againViews.push_back(again.back().view());
      }
      SS_TRY(comm.reduceScatter({"scatter", 0}, wholeViews, partViews, false));
      SS_TRY(comm.allGather({"gather", 0}, partViews, againViews));
      const double factor = ranks * (ranks + 1) / 2.0;
      for (std::size_t t = 0; t < counts.size(); ++t) {
        for (std::int64_t i = 0; i < counts[t]; ++i)
          if (elementAsDouble(againViews[t], i) != static_cast<double>(i % 13) * factor)
            return invalid("element " + std::to_string(i) + " is " + std::to_string(elementAsDouble(againViews[t], i)));
        for (std::int64_t i = partFilled(counts[t], comm.rank(), ranks); i < parts[t].elements(); ++i)
          if (elementAsDouble(partViews[t], i) != 0) return invalid("what is behind the end is not zero");
      }
    }
    return {};
  }));
}

TEST(Communicator, PartsOfOtherExtentsAreRefused) {
  expectAll(onRanks(2, [](Communicator& comm) -> Status {
    const Tensor whole(DType::kF32, {7}), part(DType::kF32, {3});
    const TensorView wholeView = whole.view(), partView = part.view();
    const Status refused = comm.allGather({"x", 0}, std::span(&partView, 1), std::span(&wholeView, 1));
    if (refused || refused.error().message.find("parts of 4 elements") == std::string::npos)
      return invalid("not refused, or without what was expected");
    return {};
  }));
}

INSTANTIATE_TEST_SUITE_P(Of, Collectives, ::testing::Values(1, 2, 3, 5));

TEST(Communicator, RanksComeToTheSameBits) {
  constexpr std::int64_t kCount = 100'000;
  std::vector<Tensor> results(4);
  expectAll(onRanks(4, [&](Communicator& comm) -> Status {
    Tensor mine(DType::kF32, {kCount});
    for (std::int64_t i = 0; i < kCount; ++i)
      mine.as<float>()[static_cast<std::size_t>(i)] = 1.0F / static_cast<float>(1 + i * (comm.rank() + 3));
    const TensorView view = mine.view();
    SS_TRY(comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), true));
    results[static_cast<std::size_t>(comm.rank())] = mine;
    return {};
  }));
  for (int r = 1; r < 4; ++r)
    EXPECT_EQ(std::memcmp(results[0].data(), results[static_cast<std::size_t>(r)].data(), results[0].bytes()), 0) << r;
}

TEST(Communicator, RanksAtDifferentNodesAreNamedAndDoNotHang) {
  const auto answers = onRanks(2, [](Communicator& comm) -> Status {
    const Tensor tensor(DType::kF32, {comm.rank() == 0 ? 8 : 4});
    const TensorView view = tensor.view();
    return comm.allReduce({comm.rank() == 0 ? "conv.weight" : "fc.weight", 3}, std::span(&view, 1), std::span(&view, 1),
                          true);
  });
  for (const Status& answer : answers) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
    for (const char* part : {"rank 0 at AllReduce 0 'conv.weight' of step 3: float32 [8]",
                             "rank 1 at AllReduce 0 'fc.weight' of step 3: float32 [4]"})
      EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }
}

TEST(Communicator, RanksAtDifferentKindsStepsAndRootsAreFound) {
  const auto found = [](const std::function<Status(Communicator&, const TensorView&)>& body) {
    for (const Status& answer : onRanks(3, [&](Communicator& comm) {
           const Tensor tensor(DType::kF32, {6});
           return body(comm, tensor.view());
         })) {
      ASSERT_FALSE(answer.has_value());
      EXPECT_NE(answer.error().message.find("different collectives"), std::string::npos) << answer.error().message;
    }
  };
  found([](Communicator& comm, const TensorView& view) {
    return comm.rank() == 1 ? comm.broadcast({"x", 0}, std::span(&view, 1), 0)
                            : comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), false);
  });
  found([](Communicator& comm, const TensorView& view) {
    return comm.allReduce({"x", comm.rank() == 2 ? 1 : 0}, std::span(&view, 1), std::span(&view, 1), false);
  });
  found([](Communicator& comm, const TensorView& view) {
    return comm.broadcast({"x", 0}, std::span(&view, 1), comm.rank() == 0 ? 0 : 1);
  });
  found([](Communicator& comm, const TensorView& view) {
    return comm.reduce({"x", 0}, view, view, comm.rank() == 0 ? 0 : 1);
  });
  // Wholes of other extents whose parts are as long.
  for (const bool gathers : {true, false})
    found([gathers](Communicator& comm, const TensorView&) {
      const Tensor whole(DType::kF32, {comm.rank() == 1 ? 5 : 6}), part(DType::kF32, {2});
      const TensorView wholeView = whole.view(), partView = part.view();
      return gathers ? comm.allGather({"x", 0}, std::span(&partView, 1), std::span(&wholeView, 1))
                     : comm.reduceScatter({"x", 0}, std::span(&wholeView, 1), std::span(&partView, 1), true);
    });
}

// Both sides of a message find out, whichever of them it is that is elsewhere.
TEST(Communicator, AMessageThatMeetsSomethingElseIsNamedOnBothRanks) {
  for (const bool sends : {true, false})
    for (const Status& answer : onRanks(2, [&](Communicator& comm) -> Status {
           const Tensor tensor(DType::kF32, {6});
           const TensorView view = tensor.view();
           if (comm.rank() == 1) return comm.allReduce({"gradients", 2}, std::span(&view, 1), std::span(&view, 1), true);
           return sends ? comm.send({"hand on", 2}, view, 1) : comm.receive({"hand on", 2}, view, 1);
         })) {
      ASSERT_FALSE(answer.has_value());
      EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
      for (const char* part : {sends ? "rank 0 at Send 0 'hand on' of step 2" : "rank 0 at Recv 0 'hand on' of step 2",
                               "rank 1 at AllReduce 0 'gradients' of step 2: float32 [6]"})
        EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
    }
  for (const Status& answer : onRanks(2, [&](Communicator& comm) -> Status {
         const Tensor tensor(DType::kF32, {comm.rank() == 0 ? 6 : 8});
         return comm.rank() == 0 ? comm.send({"x", 0}, tensor.view(), 1) : comm.receive({"x", 0}, tensor.view(), 0);
       })) {
    ASSERT_FALSE(answer.has_value());
    for (const char* part : {"float32 [6]", "float32 [8]"})
      EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }
}

TEST(Communicator, ARankThatEndsIsNamedWithItsReason) {
  const auto answers = onRanks(3, [](Communicator& comm) -> Status {
    if (comm.rank() == 1) {
      comm.end("disk full");
      return {};
    }
    const Tensor tensor(DType::kF32, {6});
    const TensorView view = tensor.view();
    Status answer = comm.allReduce({"x", 9}, std::span(&view, 1), std::span(&view, 1), false);
    const Status again = comm.allReduce({"x", 9}, std::span(&view, 1), std::span(&view, 1), false);
    EXPECT_FALSE(again.has_value());
    return answer;
  });
  for (const int r : {0, 2}) {
    const Status& answer = answers[static_cast<std::size_t>(r)];
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::kIo);
    EXPECT_NE(answer.error().message.find("rank 1: it ended: disk full"), std::string::npos) << answer.error().message;
    EXPECT_NE(answer.error().message.find("'x' of step 9"), std::string::npos) << answer.error().message;
  }
}

// A process that is killed says nothing: its sockets are closed, here by hand.
TEST(Communicator, ARankThatIsKilledIsNamed) {
  auto transports = makeLocalTransports(3);
  ASSERT_TRUE(transports.has_value());
  (*transports)[2]->end();
  std::vector<std::thread> threads;
  std::vector<Status> answers(2);
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Communicator comm(std::move((*transports)[r]), 20);
      const Tensor tensor(DType::kF32, {6});
      const TensorView view = tensor.view();
      answers[r] = comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), false);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& answer : answers) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::kIo);
    EXPECT_NE(answer.error().message.find("rank 2: its connection was closed"), std::string::npos) << answer.error().message;
  }
}

TEST(Communicator, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  std::atomic<bool> done = false;
  const auto answers = onRanks(
      2,
      [&](Communicator& comm) -> Status {
        if (comm.rank() == 1) {
          while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return {};
        }
        const Tensor tensor(DType::kF32, {6});
        const TensorView view = tensor.view();
        Status answer = comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), false);
        done = true;
        return answer;
      },
      0.2);
  ASSERT_FALSE(answers[0].has_value());
  EXPECT_EQ(answers[0].error().code, ErrorCode::kIo);
  EXPECT_NE(answers[0].error().message.find("rank 1 did not come"), std::string::npos) << answers[0].error().message;
}

TEST(Communicator, ARankThatIsToldToEndDoesNotWaitForOthers) {
  std::atomic<bool> done = false;
  const auto answers = onRanks(2, [&](Communicator& comm) -> Status {
    if (comm.rank() == 1) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return {};
    }
    comm.giveUpAt(rankClockNs());
    const Tensor tensor(DType::kF32, {6});
    const TensorView view = tensor.view();
    Status answer = comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), false);
    done = true;
    return answer;
  });
  ASSERT_FALSE(answers[0].has_value());
  EXPECT_EQ(answers[0].error().code, ErrorCode::kIo);
  EXPECT_NE(answers[0].error().message.find("waits for rank 1"), std::string::npos) << answers[0].error().message;
}

TEST(Communicator, TheRankThatComesLastIsKnown) {
  expectAll(onRanks(3, [](Communicator& comm) -> Status {
    const Tensor tensor(DType::kF32, {6});
    const TensorView view = tensor.view();
    SS_TRY(comm.allReduce({"all are here", 0}, std::span(&view, 1), std::span(&view, 1), false));
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    SS_TRY(comm.allReduce({"x", 0}, std::span(&view, 1), std::span(&view, 1), false));
    if (comm.newest().last != 1) return invalid("last is " + std::to_string(comm.newest().last));
    return {};
  }));
}

}  // namespace
}  // namespace stepscope::testing
