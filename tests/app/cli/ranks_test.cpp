// `stepscope train --distributed`: N ranks train as one process with --accumulate N does, and end together however they end.
#include "tests/app/cli/rank_processes.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/desynchronised_model.h"

namespace stepscope::testing {
namespace {

const std::string kDigits = "train " SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 1 ";

class AsOneProcess : public ::testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(AsOneProcess, RanksComeToItsParametersAndStatistics) {
  const auto& [ranks, options] = GetParam();
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", common = kDigits + options;
  const Answer alone =
      run(common + fmt::format(" --steps {} --accumulate {} --dump-params {}alone --dump-grads {}alone_grads", 3 * ranks,
                               ranks, here, here),
          folder.path());
  ASSERT_EQ(alone.exitCode, 0) << alone.text;
  const Answer together = run(
      common + fmt::format(" --steps 3 --distributed local --ranks {} --set ranks.check=on --set ranks.bucket=4096 --json "
                           "--dump-params {}together --dump-grads {}together_grads",
                           ranks, here, here),
      folder.path());
  ASSERT_EQ(together.exitCode, 0) << together.text;
  EXPECT_LT(distance(folder.path() / "alone", folder.path() / "together"), 2e-6);
  EXPECT_LT(distance(folder.path() / "alone_grads", folder.path() / "together_grads"), 2e-6);
  const auto rows = eventsOf(together.text, "ranks");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["ranks"].size(), static_cast<std::size_t>(ranks));
  EXPECT_GT(rows[2]["ranks"][1]["sent_bytes"], 0);
}

INSTANTIATE_TEST_SUITE_P(
    With, AsOneProcess,
    ::testing::Combine(::testing::Values(2, 4),
                       ::testing::Values("--optimizer sgd --lr 0.05 --momentum 0.9",
                                         "--optimizer adamw --lr 0.01 --clip-grad-norm 0.05",
                                         "--optimizer sgd --lr 0.05 --lr-schedule cosine --total-steps 4")));

// Ranks that keep parts (option ranks.shard) train as those that keep all do, and hold less.
class WithParts : public ::testing::TestWithParam<std::tuple<int, const char*, const char*>> {};

TEST_P(WithParts, RanksComeToTheParametersOfOneProcess) {
  const auto& [ranks, shard, options] = GetParam();
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", common = kDigits + options;
  const Answer alone =
      run(common + fmt::format(" --steps {} --accumulate {} --dump-params {}alone --dump-grads {}alone_grads", 4 * ranks,
                               2 * ranks, here, here),
          folder.path());
  ASSERT_EQ(alone.exitCode, 0) << alone.text;
  const auto together = [&](const char* kept, const std::string& more) {
    return run(common + fmt::format(" --steps 4 --accumulate 2 --distributed local --ranks {} --set ranks.shard={} "
                                    "--set ranks.check=on --set ranks.bucket=4096 --json {}",
                                    ranks, kept, more),
               folder.path());
  };
  const Answer parts = together(shard, fmt::format("--dump-params {}parts --dump-grads {}part_grads", here, here));
  ASSERT_EQ(parts.exitCode, 0) << parts.text;
  // Adam divides by the size of a gradient: rounding in a small one moves a parameter by more than that.
  EXPECT_LT(distance(folder.path() / "alone", folder.path() / "parts"), 1e-5);
  EXPECT_LT(distance(folder.path() / "alone_grads", folder.path() / "part_grads"), 2e-6);
  const Answer all = together("off", "");
  ASSERT_EQ(all.exitCode, 0) << all.text;
  const auto rows = eventsOf(together(shard, "").text, "ranks"), plain = eventsOf(all.text, "ranks");
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t step = 0; step < rows.size(); ++step)
    for (int r = 0; r < ranks; ++r) {
      const auto& row = rows[step]["ranks"][static_cast<std::size_t>(r)];
      EXPECT_LT(row["state_bytes"], plain[step]["ranks"][static_cast<std::size_t>(r)]["state_bytes"]);
      EXPECT_LE(row["planned_bytes"], plain[step]["ranks"][static_cast<std::size_t>(r)]["planned_bytes"]);
      // The plan knows to the byte what its collectives send. Running statistics are no part of it.
      std::int64_t sent = 0;
      for (const auto& collective : row["collectives"])
        if (collective["node"] != "running statistics") sent += collective["sent_bytes"].get<std::int64_t>();
      EXPECT_EQ(row["planned_sent_bytes"], sent) << row.dump();
    }
}

INSTANTIATE_TEST_SUITE_P(Of, WithParts,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::Values("optimizer", "gradients", "parameters"),
                                            ::testing::Values("--optimizer sgd --lr 0.05 --momentum 0.9",
                                                              "--optimizer adamw --lr 0.01 --clip-grad-norm 0.05")));

TEST(RanksOfTheProgram, PartsAreSavedWholeAndGoOnWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", common = kDigits + "--optimizer adam --lr 0.01 ";
  const auto go = [&](const std::string& more) {
    const Answer answer = run(common + more, folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
  };
  for (const std::string shard : {"optimizer", "gradients", "parameters"}) {
    const std::string parts = "--distributed local --set ranks.shard=" + shard + " ";
    go("--steps 3 --ranks 4 --save " + here + "four " + parts);
    go("--steps 3 --ranks 4 --save " + here + "all --distributed local");
    EXPECT_LT(distance(folder.path() / "four", folder.path() / "all"), 2e-6);
    go("--steps 2 --ranks 2 --init-from " + here + "four --resume --dump-params " + here + "two " + parts);
    go("--steps 4 --accumulate 2 --init-from " + here + "four --resume --dump-params " + here + "one");
    EXPECT_LT(distance(folder.path() / "two", folder.path() / "one"), 2e-6);
    // The same number of ranks goes on as if nothing had been between.
    go("--steps 4 --ranks 3 --dump-params " + here + "whole " + parts);
    go("--steps 2 --ranks 3 --save " + here + "half " + parts);
    go("--steps 2 --ranks 3 --init-from " + here + "half --resume --dump-params " + here + "both " + parts);
    EXPECT_EQ(contents(folder.path() / "whole"), contents(folder.path() / "both"));
  }
}

TEST(RanksOfTheProgram, OptimizersThatLookAtWholeParametersAreRefusedWithParts) {
  const TemporaryFolder folder;
  const Answer answer =
      run(kDigits + "--optimizer lamb --distributed local --set ranks.shard=optimizer --steps 1", folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("option 'ranks.shard': optimizer; lamb looks at whole parameters"), std::string::npos)
      << answer.text;
}

// With float16 gradients and a loss scale, whose verdict all ranks share; and parameters that are kept in a low type.
TEST(RanksOfTheProgram, PartsOfLowTypesStayTheSameOnAllRanks) {
  const TemporaryFolder folder;
  for (const char* options :
       {"--precision fp16 --set loss-scale=dynamic", "--precision bf16", "--precision bf16 --set master-weights=off"})
    for (const char* shard : {"optimizer", "gradients", "parameters"}) {
      const Answer answer = run(kDigits + options +
                                    " --optimizer adamw --lr 0.01 --steps 4 --accumulate 2 --distributed local "
                                    "--ranks 3 --set ranks.check=on --set ranks.shard=" +
                                    shard,
                                folder.path());
      EXPECT_EQ(answer.exitCode, 0) << options << " " << shard << ": " << answer.text;
    }
}

// A number that is not finite is told, and traced where the step can be replayed; the run goes on unless it is to stop.
TEST(RanksOfTheProgram, ALossThatIsNotFiniteIsToldAndTheRunGoesOn) {
  const TemporaryFolder folder;
  for (const char* shard : {"off", "optimizer", "gradients", "parameters"}) {
    const std::string common =
        kDigits + "--lr 1e30 --steps 3 --distributed local --ranks 2 --json --set ranks.shard=" + shard;
    const Answer told = run(common, folder.path());
    EXPECT_EQ(eventsOf(told.text, "step").size(), 3U) << shard << ": " << told.text;
    EXPECT_NE(told.text.find("not finite in 2 steps, first in step 1"), std::string::npos) << shard << ": " << told.text;
    const bool traced = told.text.find("first cause: ") != std::string::npos;
    EXPECT_EQ(traced, std::string(shard) != "parameters") << told.text;
    const Answer stopped = run(common + " --set break-on=nan,inf", folder.path());
    EXPECT_EQ(stopped.exitCode, 1) << shard;
    EXPECT_EQ(eventsOf(stopped.text, "step").size(), 1U) << shard << ": " << stopped.text;
    EXPECT_NE(stopped.text.find("step 1: loss is NaN"), std::string::npos) << shard << ": " << stopped.text;
  }
}

TEST(RanksOfTheProgram, ResumeGoesOnWithAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/", common = kDigits + "--optimizer adam --lr 0.01 ";
  const auto go = [&](const std::string& more) {
    const Answer answer = run(common + more, folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
  };
  // Twelve entries of the data in updates of four; then, with two ranks and with one, updates of two.
  go("--steps 3 --distributed local --ranks 4 --save " + here + "four");
  go("--steps 2 --distributed local --ranks 2 --init-from " + here + "four --resume --dump-params " + here + "two");
  go("--steps 4 --accumulate 2 --init-from " + here + "four --resume --dump-params " + here + "one");
  EXPECT_LT(distance(folder.path() / "two", folder.path() / "one"), 2e-6);
  // The same number of ranks goes on as if nothing had been between.
  go("--steps 4 --distributed local --ranks 2 --dump-params " + here + "whole");
  go("--steps 2 --distributed local --ranks 2 --save " + here + "half");
  go("--steps 2 --distributed local --ranks 2 --init-from " + here + "half --resume --dump-params " + here + "both");
  EXPECT_EQ(contents(folder.path() / "whole"), contents(folder.path() / "both"));
}

// What `stepscope capacity` says of machines that are not here is what ranks that are here take and send.
TEST(RanksOfTheProgram, CapacityPredictsWhatRanksTakeAndSend) {
  const TemporaryFolder folder;
  const std::string network = (folder.path() / "network.json").string();
  std::ofstream(network) << R"({"levels": [{"name": "here", "latency_ns": 20000, "bytes_per_second": 1e9}]})";
  for (const char* shard : {"off", "optimizer", "gradients", "parameters"}) {
    const std::string options = fmt::format(" --optimizer adamw --accumulate 2 --set ranks.shard={} --json", shard);
    const std::string model = SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 1";
    const Answer planned = run("capacity " + model + " --ranks 2..4 --network " + network + options, folder.path());
    ASSERT_EQ(planned.exitCode, 0) << planned.text;
    const auto points = eventsOf(planned.text, "capacity_ranks");
    ASSERT_EQ(points.size(), 2U);
    for (const auto& point : points) {
      const int ranks = point["ranks"];
      const Answer ran =
          run(fmt::format("train {}{} --steps 2 --distributed local --ranks {}", model, options, ranks), folder.path());
      ASSERT_EQ(ran.exitCode, 0) << ran.text;
      std::int64_t sent = 0;
      const auto rows = eventsOf(ran.text, "ranks");
      ASSERT_EQ(rows.size(), 2U);
      for (const auto& row : rows) {
        const auto& first = row["ranks"][0];
        EXPECT_EQ(first["planned_bytes"], point["peak_bytes"]) << shard;
        EXPECT_LE(first["peak_bytes"], point["peak_bytes"]) << shard;
        for (const auto& collective : first["collectives"])
          if (collective["node"] != "running statistics") sent += collective["sent_bytes"].get<std::int64_t>();
      }
      EXPECT_EQ(point["sent_bytes"], sent) << shard << " " << ranks;
      EXPECT_GT(point["exposed_ns"].get<double>(), 0);
    }
  }
  EXPECT_EQ(run("capacity " SS_SAMPLES "/digits/model.onnx --ranks 8..4", folder.path()).exitCode, 2);
  EXPECT_EQ(run("capacity " SS_SAMPLES "/digits/model.onnx --ranks 8", folder.path()).exitCode, 2);
}

// Rows of every rank on one clock: a collective lies in its step, and ranks move data in it at the same time.
TEST(RanksOfTheProgram, AProjectSaysWhenEachRankDidWhat) {
  const TemporaryFolder folder;
  const std::string here = folder.path().string() + "/";
  const Answer ran =
      run(kDigits + "--steps 4 --distributed local --ranks 3 --set ranks.bucket=4096 --project " + here + "p.stepscope",
          folder.path());
  ASSERT_EQ(ran.exitCode, 0) << ran.text;
  const auto rows = [&](const std::string& query) {
    const Answer answer = run("sql " + here + "p.stepscope \"" + query + "\" --json", folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    return answer.text;
  };
  EXPECT_NE(rows("SELECT count(*) AS n FROM rank_steps WHERE begin_ns > 0 AND exposed_ns > 0").find("[12]"),
            std::string::npos);
  const std::string outside = rows(
      "SELECT count(*) AS n FROM rank_collectives c JOIN rank_steps s USING (run, step, rank) WHERE c.begin_ns < "
      "s.begin_ns OR c.begin_ns > s.begin_ns + s.ns");
  EXPECT_NE(outside.find("[0]"), std::string::npos) << outside;
  // Of every step the instructions of the two ranks that do not record, as many as rank 0 ran.
  const std::string timed = rows(
      "SELECT count(*) AS n FROM rank_spans r JOIN step_spans s USING (step_id, run) WHERE r.rank > 0 AND r.count = "
      "s.count");
  EXPECT_NE(timed.find("[8]"), std::string::npos) << timed;
  ASSERT_EQ(run("report " + here + "p.stepscope -o " + here + "p.trace.json", folder.path()).exitCode, 0);
  std::ifstream file(here + "p.trace.json");
  const auto trace = nlohmann::json::parse(file);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 3);
  std::map<std::string, int> threads;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name") threads[event["args"]["name"]] = event["tid"];
  std::map<std::string, std::map<int, std::pair<double, double>>> moved;  // by step and node, by rank: when
  for (const auto& event : trace["traceEvents"])
    if (event.value("cat", "") == "collective" && !event["name"].get<std::string>().starts_with("wait")) {
      const int rank = event["args"]["rank"];
      EXPECT_EQ(event["tid"], threads.at("rank " + std::to_string(rank) + ": collectives"));
      const double begin = event["ts"];
      moved[event["args"]["step"].dump() + event["name"].get<std::string>()][rank] = {begin,
                                                                                      begin + event["dur"].get<double>()};
    }
  // The instructions of each rank lie in its steps.
  std::map<std::pair<int, int>, std::pair<double, double>> steps;  // by row and step
  std::map<int, int> counts;                                       // by rank
  for (const auto& event : trace["traceEvents"])
    if (const std::string name = event["name"]; name.starts_with("rank ") && event["ph"] == "X")
      steps[{event["tid"], std::stoi(name.substr(name.find("step ") + 5))}] = {
          event["ts"], event["ts"].get<double>() + event["dur"].get<double>()};
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "cpu_op" || !event["args"].contains("rank")) continue;
    ++counts[event["args"]["rank"]];
    EXPECT_TRUE(event["args"].contains("label")) << event.dump();
    const auto step = steps.find({event["tid"], event["args"]["step"]});
    ASSERT_NE(step, steps.end()) << event.dump();
    EXPECT_GE(event["ts"].get<double>(), step->second.first) << event.dump();
    EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), step->second.second + 1) << event.dump();
  }
  EXPECT_GT(counts[1], 0);
  EXPECT_EQ(counts[1], counts[2]);
  EXPECT_GE(moved.size(), 8U);
  for (const auto& [what, ranks] : moved) EXPECT_EQ(ranks.size(), 3U) << what;
}

TEST(RanksOfTheProgram, AStateInMidRoundIsRefused) {
  const TemporaryFolder folder;
  const std::string state = folder.path().string() + "/state";
  ASSERT_EQ(run(kDigits + "--steps 1 --accumulate 2 --save " + state, folder.path()).exitCode, 0);
  const Answer answer =
      run(kDigits + "--steps 2 --accumulate 2 --distributed local --init-from " + state + " --resume", folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("middle of a round"), std::string::npos) << answer.text;
}

TEST(RanksOfTheProgram, WhatMakesNoSenseIsWrongUsage) {
  const TemporaryFolder folder;
  EXPECT_EQ(run(kDigits + "--distributed tcp", folder.path()).exitCode, 2);
  EXPECT_EQ(run(kDigits + "--distributed local --ranks 0", folder.path()).exitCode, 2);
  EXPECT_EQ(run(kDigits + "--distributed local --steps 3 --accumulate 2", folder.path()).exitCode, 2);
  const Answer build = run("build " SS_SAMPLES "/digits/model.onnx --distributed local", folder.path());
  EXPECT_EQ(build.exitCode, 1);
  EXPECT_NE(build.text.find("option 'distributed': local; expected off here"), std::string::npos) << build.text;
}

// Whether rank 0 is, and what ranks keep parts of.
class Killed : public ::testing::TestWithParam<std::tuple<bool, const char*>> {};

TEST_P(Killed, TheOthersEndWithATypedErrorAndNothingIsHalfWritten) {
  const auto& [first, shard] = GetParam();
  const TemporaryFolder folder;
  const std::string state = folder.path().string() + "/state", parts = fmt::format(" --set ranks.shard={}", shard);
  const Started started = start(kDigits + "--optimizer adam --steps 100000000 --json --distributed local --ranks 3 --save " +
                                    state + " --set checkpoint.seconds=0.2" + parts,
                                folder.path());
  ASSERT_TRUE(comes(started, "\"event\":\"step\""));
  for (int i = 0; i < 600 && !std::filesystem::exists(state); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::set<pid_t> others = childrenOf(started.pid);
  ASSERT_EQ(others.size(), 2U);
  kill(first ? started.pid : *others.begin(), SIGKILL);
  EXPECT_EQ(endOf(started.pid), first ? 128 + SIGKILL : 1);
  for (int i = 0; i < 1200; ++i) {  // nobody waits for the children of a dead rank 0
    bool any = false;
    for (const pid_t other : others) any |= kill(other, 0) == 0 && !childrenOf(1).contains(other);
    if (!any) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::string log = contents(started.log);
  EXPECT_NE(log.find("its connection was closed; expected it at"), std::string::npos)
      << log.substr(log.size() - std::min<std::size_t>(log.size(), 2000));
  EXPECT_FALSE(tensorsOf(state).empty());
  const Answer resumed =
      run(kDigits + "--optimizer adam --steps 1 --distributed local --ranks 2 --init-from " + state + " --resume" + parts,
          folder.path());
  EXPECT_EQ(resumed.exitCode, 0) << resumed.text;
}

INSTANTIATE_TEST_SUITE_P(Rank, Killed,
                         ::testing::Combine(::testing::Values(false, true),
                                            ::testing::Values("off", "gradients", "parameters")));

TEST(RanksOfTheProgram, AnInterruptEndsAllOfThemAfterTheSameStep) {
  const TemporaryFolder folder;
  const std::string state = folder.path().string() + "/state";
  const Started started =
      start(kDigits + "--steps 100000000 --json --distributed local --ranks 2 --save " + state, folder.path());
  ASSERT_TRUE(comes(started, "\"event\":\"step\""));
  kill(started.pid, SIGTERM);
  EXPECT_EQ(endOf(started.pid), 1);
  const std::string log = contents(started.log);
  const auto stepsOf = [&](const std::string& who) {
    const auto at = log.find("\n" + who + "error: train: cancelled after ");
    EXPECT_NE(at, std::string::npos) << who << log.substr(log.size() - std::min<std::size_t>(log.size(), 2000));
    return at == std::string::npos ? -1 : std::atoi(log.c_str() + log.find("after ", at) + 6);
  };
  EXPECT_EQ(stepsOf(""), stepsOf("rank 1: "));
  EXPECT_FALSE(tensorsOf(state).empty());
}

// A file with Broadcast, Reduce, AllToAll, AllReduce and messages, of which each rank has its own input, against one process
// that has both.
TEST(RanksOfTheProgram, AModelWithCollectivesTrainsAsOneProcessThatHasAllInputs) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 4);
  const std::string here = folder.path().string() + "/";
  const auto train = [&](const TestModel& model, const std::string& more) {
    return fmt::format("train {} --data {} --loss {} --optimizer sgd --lr 0.03 --steps 4 --threads 1 {}",
                       model.model.string(), model.data.string(), model.loss, more);
  };
  const Answer alone =
      run(train(models.one, fmt::format("--freeze '{}' --dump-params {}alone", kRankModelFrozen, here)), folder.path());
  ASSERT_EQ(alone.exitCode, 0) << alone.text;
  const auto compare = [&](const Answer& together) {
    ASSERT_EQ(together.exitCode, 0) << together.text;
    const auto one = tensorsOf(folder.path() / "alone")["w"], two = tensorsOf(folder.path() / "together")["w"];
    ASSERT_EQ(one.size(), 9U);
    ASSERT_EQ(two.size(), 9U);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 2e-6) << i;
    const auto rows = eventsOf(together.text, "ranks");
    ASSERT_EQ(rows.size(), 4U);
    std::set<std::string> met;
    for (const auto& row : rows[3]["ranks"]) {
      std::int64_t sent = 0;
      for (const auto& collective : row["collectives"]) {
        met.insert(collective["node"]);
        sent += collective["sent_bytes"].get<std::int64_t>();
      }
      EXPECT_EQ(row["planned_sent_bytes"], sent) << row.dump();
    }
    for (const char* node : {"b", "r", "a", "v", "u", "m", "all", "rows", "constant"})
      EXPECT_TRUE(met.contains(node)) << node;
  };
  const std::string together = "--json --dump-params " + here + "together ";
  {
    SCOPED_TRACE("local");
    compare(run(train(models.ranks, together + "--distributed local --ranks 2"), folder.path()));
  }
  const Answer refused = run(train(models.ranks, ""), folder.path());
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_NE(refused.text.find("expected 0 to 0, as this run has 1 rank"), std::string::npos) << refused.text;
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  SCOPED_TRACE("mpi");
  std::filesystem::remove(folder.path() / "together");
  compare(runWith("mpirun --allow-run-as-root --oversubscribe -n 2", train(models.ranks, together + "--distributed mpi"),
                  folder.path()));
}

// Started by mpirun, ranks may have been given different things: that is told before anything is built, and does not hang.
TEST(RanksOfTheProgram, ThoseThatWereGivenDifferentThingsAreNamed) {
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const TemporaryFolder folder;
  const std::string mpi = "--distributed mpi --steps 2 ";
  const auto together = [&](const std::string& first, const std::string& second) {
    return runWith("timeout 60 mpirun --allow-run-as-root --oversubscribe -n 1",
                   fmt::format("{} {} {} : -n 1 {} {} {}", kDigits, mpi, first, SS_PROGRAM, second, mpi), folder.path());
  };
  const std::string save = fmt::format("--save {}/state.safetensors", folder.path().string());
  for (const auto& [first, second, message] :
       {std::tuple{std::string("--optimizer sgd"), std::string("--optimizer adamw"),
                   "rank 1: error: option 'optimizer' is 'adamw', rank 0 has 'sgd'; expected the same on all ranks"},
        std::tuple{std::string("--clip-grad-norm 1"), std::string(),
                   "rank 1: error: option 'clip-grad-norm' is not set, rank 0 has '1'; expected the same on all ranks"},
        std::tuple{std::string(), std::string("--set pass.cse=off"),
                   "rank 1: error: option 'pass.cse' is 'off', rank 0 has not set it; expected the same on all ranks"},
        std::tuple{save, std::string(),
                   "rank 1: error: output --save is 'no', rank 0 has 'yes'; expected the same on all ranks"}}) {
    const Answer answer = together(first, kDigits + second);
    EXPECT_NE(answer.exitCode, 0) << answer.text;
    EXPECT_NE(answer.exitCode, 124) << "it hangs";
    EXPECT_NE(answer.text.find(message), std::string::npos) << answer.text;
  }
  // A model with one node more.
  const auto other = folder.path() / "other.onnx";
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(contents(SS_SAMPLES "/digits/model.onnx")));
  auto* const node = model.mutable_graph()->add_node();
  node->set_op_type("Identity");
  node->set_name("planted");
  node->add_input(model.graph().input(0).name());
  node->add_output("planted");
  std::ofstream(other, std::ios::binary) << model.SerializeAsString();
  const Answer answer = together("", fmt::format("train {} {}", other.string(), kDigits.substr(kDigits.find("--data"))));
  EXPECT_NE(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("rank 1: error: node 'planted' is 'Identity("), std::string::npos) << answer.text;
  // What is a matter of each rank.
  const Answer same = together("--set long.ms=50", kDigits + "--set record=off");
  EXPECT_EQ(same.exitCode, 0) << same.text;
}

// The comparison of option ranks.check, which every run makes once before its first step.
TEST(RanksOfTheProgram, TheFirstThatHoldsOtherBitsIsNamedWithItsParameter) {
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const TemporaryFolder folder;
  const auto state = [&](const std::string& name) { return (folder.path() / name).string(); };
  for (const auto& [name, rate] : {std::pair{"a", "0.01"}, std::pair{"b", "0.02"}})
    ASSERT_EQ(run(kDigits + fmt::format("--steps 1 --lr {} --save {}", rate, state(name)), folder.path()).exitCode, 0);
  const auto begin = [&](const char* name) { return kDigits + "--steps 2 --distributed mpi --init-from " + state(name); };
  const Answer answer =
      runWith("timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2",
              fmt::format("{} : -n 1 {} {} : -n 1 {} {}", begin("a"), SS_PROGRAM, begin("b"), SS_PROGRAM, begin("a")),
              folder.path());
  EXPECT_NE(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.exitCode, 124) << "it hangs";
  // mpirun ends all ranks as soon as one has ended, maybe before rank 0 has spoken.
  EXPECT_NE(answer.text.find("error: parameter '"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("': rank 2 holds other bits than rank 0 before step 0; expected the same on all ranks"),
            std::string::npos)
      << answer.text;
}

// What no comparison before the build can see: collectives in another order, and of another shape, while the step runs.
TEST(RanksOfTheProgram, ThoseThatComeToOtherCollectivesAreToldBothNodes) {
  const TemporaryFolder folder;
  const TestModel order = writeOtherOrder(folder), two = writeOtherShape(folder, 2), three = writeOtherShape(folder, 3);
  const auto train = [](const TestModel& model, const std::string& how) {
    return fmt::format("train {} --data {} --loss {} --steps 4 --threads 1 {}", model.model.string(), model.data.string(),
                       model.loss, how);
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
  told(runWith("timeout 60", train(order, "--distributed local --ranks 2"), folder.path()), kAtOtherOrder, true);
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const std::string mpirun = "timeout 60 mpirun --allow-run-as-root --oversubscribe -n ";
  told(runWith(mpirun + "2", train(order, "--distributed mpi"), folder.path()), kAtOtherOrder, false);
  told(
      runWith(mpirun + "1",
              fmt::format("{} : -n 1 {} {}", train(two, "--distributed mpi"), SS_PROGRAM, train(three, "--distributed mpi")),
              folder.path()),
      kAtOtherShape, false);
}

// mpirun itself ends what is left of a run, a moment after one of its processes has died.
TEST(RanksOfTheProgram, MpirunEndsAllRanksWhenOneIsKilled) {
  if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "mpirun is not installed (package openmpi-bin)";
  const TemporaryFolder folder;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  const Started started =
      start(kDigits + "--steps 100000000 --json --distributed mpi", folder.path(), "mpirun --oversubscribe -n 3");
  ASSERT_TRUE(comes(started, "\"event\":\"step\"")) << contents(started.log);
  const std::set<pid_t> ranks = childrenOf(started.pid);
  ASSERT_GE(ranks.size(), 3U);
  kill(*ranks.rbegin(), SIGKILL);
  EXPECT_GT(endOf(started.pid), 0);
}

}  // namespace
}  // namespace stepscope::testing
