// `stepscope train --distributed nccl`: collectives on the streams of GPUs. GPUs and NCCL are fake ones
// (tests/kernels/fake_gpu), so that what is seen here is everything but NCCL's own work: speed, topology, sums of low types.
#include "tests/app/cli/rank_processes.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/support/desynchronised_model.h"

namespace stepscope::testing {
namespace {

const std::string kDigits =
    "train " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 1 --device cuda ";

class NcclRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(useFakeGpu("devices=8"));
    setenv("LD_LIBRARY_PATH", SS_FAKE_GPU, 1);
    setenv("STEPSCOPE_NCCL", SS_FAKE_NCCL, 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    order("");
  }
  // What the fake NCCL does, and writes down.
  void order(const std::string& orders) {
    setenv("STEPSCOPE_FAKE_NCCL", (orders + (orders.empty() ? "" : ",") + "log=" + path("log")).c_str(), 1);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  Answer go(const std::string& arguments) const { return run(arguments, folder_.path()); }
  Answer fails(const std::string& arguments) const {
    const Answer answer = go(kDigits + arguments);
    EXPECT_EQ(answer.exitCode, 1) << answer.text;
    return answer;
  }
  // The collectives that NCCL ran.
  std::set<std::string> ran() const {
    std::ifstream log(path("log"));
    std::set<std::string> names;
    for (std::string name; std::getline(log, name);) names.insert(name);
    return names;
  }
  const TemporaryFolder folder_;
};

TEST_F(NcclRanks, ComeToTheParametersOfOneProcess) {
  for (const int ranks : {2, 3})
    for (const std::string shard : {"off", "optimizer", "gradients", "parameters"}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, shard));
      std::filesystem::remove(path("log"));
      const std::string common = kDigits + "--optimizer adamw --lr 0.01 --clip-grad-norm 0.05 ";
      const Answer alone = go(common + fmt::format("--steps {} --accumulate {} --dump-params {} --dump-grads {}", 4 * ranks,
                                                   2 * ranks, path("alone"), path("alone_grads")));
      ASSERT_EQ(alone.exitCode, 0) << alone.text;
      const Answer together = go(common + fmt::format("--steps 4 --accumulate 2 --distributed nccl --ranks {} --json --set "
                                                      "ranks.check=on --set ranks.bucket=4096 --set ranks.shard={} "
                                                      "--dump-params {} --dump-grads {}",
                                                      ranks, shard, path("together"), path("together_grads")));
      ASSERT_EQ(together.exitCode, 0) << together.text;
      // Adam divides by the size of a gradient: three ranks over sockets come to the same distance.
      EXPECT_LT(distance(path("alone"), path("together")), ranks == 2 ? 1e-5 : 5e-5);
      EXPECT_LT(distance(path("alone_grads"), path("together_grads")), 2e-6);
      const auto names = ran();
      // Of three ranks, whose parts are not of one length, Reduce and Broadcast do it.
      if (shard == "off")
        EXPECT_TRUE(names.contains("AllReduce"));
      else
        EXPECT_TRUE(names.contains(ranks == 2 ? "ReduceScatter" : "Reduce") ||
                    (shard == "optimizer" && names.contains("AllReduce")));
      if (shard != "off") EXPECT_TRUE(names.contains(ranks == 2 ? "AllGather" : "Broadcast"));
      const auto rows = eventsOf(together.text, "ranks");
      ASSERT_EQ(rows.size(), 4U);
      EXPECT_GT(rows[3]["ranks"][1]["sent_bytes"], 0);
      EXPECT_EQ(rows[3]["ranks"][1]["planned_sent_bytes"].get<std::int64_t>() > 0, true);
    }
}

TEST_F(NcclRanks, SumsOfLowTypesStayTheSameOnAllRanks) {
  for (const char* precision : {"bf16", "fp16 --set loss-scale=dynamic"})
    for (const char* shard : {"off", "parameters"}) {
      const Answer answer =
          go(kDigits + fmt::format("--precision {} --optimizer adamw --lr 0.01 --steps 2 --distributed nccl "
                                   "--ranks 2 --set ranks.check=on --set ranks.shard={}",
                                   precision, shard));
      EXPECT_EQ(answer.exitCode, 0) << precision << " " << shard << ": " << answer.text;
    }
}

TEST_F(NcclRanks, StateIsSavedWholeAndGoesOn) {
  const std::string common = kDigits + "--optimizer adam --lr 0.01 --distributed nccl --set ranks.shard=gradients ";
  ASSERT_EQ(go(common + "--ranks 2 --steps 2 --dump-params " + path("whole")).exitCode, 0);
  ASSERT_EQ(go(common + "--ranks 2 --steps 1 --save " + path("half")).exitCode, 0);
  const Answer resumed =
      go(common + "--ranks 2 --steps 1 --init-from " + path("half") + " --resume --dump-params " + path("both"));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.text;
  EXPECT_EQ(contents(path("whole")), contents(path("both")));
}

TEST_F(NcclRanks, CollectivesOfAModelRunOnTheGpu) {
  const RankModels models = writeRankModels(folder_, 4);
  const auto train = [&](const TestModel& model, const std::string& more) {
    return fmt::format("train {} --data {} --loss {} --optimizer sgd --lr 0.03 --steps 4 --threads 1 --device cuda {}",
                       model.model.string(), model.data.string(), model.loss, more);
  };
  const Answer alone = go(train(models.one, fmt::format("--freeze '{}' --dump-params {}", kRankModelFrozen, path("alone"))));
  ASSERT_EQ(alone.exitCode, 0) << alone.text;
  const Answer together = go(train(models.ranks, "--distributed nccl --ranks 2 --dump-params " + path("together")));
  ASSERT_EQ(together.exitCode, 0) << together.text;
  const auto one = tensorsOf(path("alone"))["w"], two = tensorsOf(path("together"))["w"];
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 2e-6) << i;
  const auto names = ran();
  for (const char* name : {"AllReduce", "Broadcast", "Reduce", "Send", "Recv", "AllGather"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(NcclRanks, MpirunStartsThemToo) {
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const Answer answer = runWith("mpirun --oversubscribe -n 2", kDigits + "--steps 2 --distributed nccl", folder_.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_TRUE(ran().contains("AllReduce"));
}

// They find out where they meet, before anything is on a stream: of what differs nothing comes to NCCL, where it would hang.
TEST_F(NcclRanks, RanksAtOtherCollectivesAreToldBothNodes) {
  const TestModel order = writeOtherOrder(folder_), two = writeOtherShape(folder_, 2), three = writeOtherShape(folder_, 3);
  const auto train = [](const TestModel& model, const std::string& how) {
    return fmt::format("train {} --data {} --loss {} --steps 4 --threads 1 --device cuda --distributed nccl {}",
                       model.model.string(), model.data.string(), model.loss, how);
  };
  // mpirun ends all ranks as soon as one has ended, maybe before the others have spoken.
  const auto told = [](const Answer& answer, const std::string& message, bool allSay) {
    EXPECT_NE(answer.exitCode, 0) << answer.text;
    EXPECT_NE(answer.exitCode, 124) << "it hangs";
    const std::string said = withoutNumbers(answer.text);
    EXPECT_NE(said.find("error: " + message), std::string::npos) << said;
    if (!allSay) return;
    EXPECT_NE(said.find("\nerror: " + message), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1: error: " + message), std::string::npos) << said;
  };
  told(runWith("timeout 60", train(order, "--ranks 2"), folder_.path()), kAtOtherOrder, true);
  EXPECT_TRUE(ran().contains("AllReduce") && ran().contains("Broadcast")) << "of step 0";
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  std::filesystem::remove(path("log"));
  told(runWith("timeout 60 mpirun --oversubscribe -n 1",
               fmt::format("{} : -n 1 {} {}", train(two, ""), SS_PROGRAM, train(three, "")), folder_.path()),
       kAtOtherShape, false);
  EXPECT_FALSE(ran().contains("AllReduce"));
}

TEST_F(NcclRanks, RanksWithOtherOptionsAreToldBothValues) {
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const std::string common = kDigits + "--steps 2 --distributed nccl --set ranks.bucket=";
  const Answer answer = runWith("mpirun --oversubscribe -n 1",
                                common + "4096 : -n 1 " + SS_PROGRAM + " " + common + "26214400", folder_.path());
  EXPECT_NE(answer.exitCode, 0);
  EXPECT_NE(answer.text.find("option 'ranks.bucket' is '26214400', rank 0 has '4096'"), std::string::npos) << answer.text;
}

// Rank 1 is killed while rank 0 waits for it on its GPU: a wait of the host that has no end of its own.
TEST_F(NcclRanks, AKilledRankEndsTheOthersThatWaitOnTheirGpus) {
  order("rank=1,hang=3");
  const Started started =
      start(kDigits + "--steps 100 --json --set ranks.bucket=4096 --distributed nccl --ranks 2", folder_.path());
  for (int i = 0; i < 1200 && contents(path("log")).empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const std::set<pid_t> others = childrenOf(started.pid);
  ASSERT_EQ(others.size(), 1U) << contents(started.log);
  kill(*others.begin(), SIGKILL);
  EXPECT_EQ(endOf(started.pid), 1);
  EXPECT_NE(contents(started.log).find("rank 1: its connection was closed; expected it at"), std::string::npos)
      << contents(started.log);
}

TEST_F(NcclRanks, AnErrorThatComesLaterEndsAllOfThem) {
  order("rank=1,async-error=3");
  const std::string text = fails("--steps 4 --set ranks.bucket=4096 --distributed nccl --ranks 2").text;
  EXPECT_NE(text.find("NCCL: a collective that runs: remote process exited or there was a network error: of the fake NCCL"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nerror: "), std::string::npos) << text;  // of rank 0 too
}

TEST_F(NcclRanks, ACollectiveThatDoesNotEndIsGivenUp) {
  order("rank=1,hang=2");
  const std::string text =
      fails("--steps 4 --set ranks.bucket=4096 --set ranks.timeout=2 --distributed nccl --ranks 2").text;
  EXPECT_NE(text.find("did not"), std::string::npos) << text;
  EXPECT_NE(text.find("hint: option ranks.timeout"), std::string::npos) << text;
}

TEST_F(NcclRanks, ACallThatFailsNamesItsNode) {
  order("rank=0,fail-call=2");
  const std::string text = fails("--steps 4 --set ranks.bucket=4096 --distributed nccl --ranks 2").text;
  EXPECT_NE(text.find("gradients of"), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL: AllReduce: unhandled system error"), std::string::npos) << text;
}

TEST_F(NcclRanks, WhatIsMissingIsNamed) {
  const std::string two = "--steps 2 --distributed nccl --ranks 2";
  setenv("STEPSCOPE_NCCL", "off", 1);
  std::string text = fails(two).text;
  EXPECT_NE(text.find("NCCL is switched off (STEPSCOPE_NCCL=off)"), std::string::npos) << text;
  setenv("STEPSCOPE_NCCL", path("nowhere.so").c_str(), 1);
  text = fails(two).text;
  EXPECT_NE(text.find("no NCCL on this machine (" + path("nowhere.so") + "); expected NCCL 2.10"), std::string::npos)
      << text;
  EXPECT_NE(go("doctor").text.find("no nccl: no NCCL on this machine"), std::string::npos);
  setenv("STEPSCOPE_NCCL", SS_FAKE_NCCL, 1);
  EXPECT_NE(go("doctor").text.find("; nccl: NCCL 2.21.5"), std::string::npos);
  order("old");
  text = fails(two).text;
  EXPECT_NE(text.find("NCCL 2.8.3; expected 2.10 or later"), std::string::npos) << text;
  order("fail-init");
  text = fails(two).text;
  EXPECT_NE(text.find("NCCL: rank 0 of 2 on device 'cuda:0': unhandled system error"), std::string::npos) << text;
  order("");
  setenv("STEPSCOPE_FAKE_GPU", "devices=1", 1);
  text = fails(two).text;  // the second rank has no GPU
  EXPECT_NE(text.find("rank 1: error: device 'cuda:1'"), std::string::npos) << text;
  setenv("STEPSCOPE_FAKE_GPU", "no-device", 1);
  text = fails(two).text;
  EXPECT_NE(text.find("device 'cuda': no GPU was found"), std::string::npos) << text;
  text = go("train " SS_SAMPLES "/digits/model.onnx --device cpu " + two).text;
  EXPECT_NE(text.find("option 'distributed': nccl on device 'cpu'; expected --device cuda"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepscope::testing
