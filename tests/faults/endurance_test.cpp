// The program for long, and killed often: nothing grows, and no step that stood in the file is lost. CI runs a few of the
// kills and a short soak; the label `long` runs a thousand kills and a million steps.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "storage/queries.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/faults/child.h"

namespace stepscope::testing {
namespace {

const std::string kModel = SS_SAMPLES "/digits/model.onnx", kData = SS_SAMPLES "/digits/batches.npz";

// Steps of the only run of the project, without a gap from 0 on; -1 when there is no run.
std::int64_t stepsIn(const std::filesystem::path& path, const std::string& status) {
  const auto project = storage::Project::openForWriting(path);
  EXPECT_TRUE(project) << project.error().message;
  if (!project) return -1;
  EXPECT_TRUE(project->warnings().empty());
  const auto runs = storage::listRuns(*project);
  EXPECT_TRUE(runs) << runs.error().message;
  if (!runs || runs->empty()) return -1;
  EXPECT_EQ(runs->size(), 1U);
  EXPECT_EQ((*runs)[0].status, status);
  const auto steps = storage::readSteps(*project, (*runs)[0].id);
  EXPECT_TRUE(steps) << steps.error().message;
  if (!steps) return -1;
  for (std::size_t i = 0; i < steps->size(); ++i)
    if ((*steps)[i].step != static_cast<std::int64_t>(i)) {
      ADD_FAILURE() << "row " << i << " is step " << (*steps)[i].step;
      break;
    }
  return static_cast<std::int64_t>(steps->size());
}

// Half of the runs are killed before or while the file is made. A reader counts the committed steps while the writer lives;
// when it is dead, no fewer are there.
void killRuns(int rounds) {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  std::int64_t steps = 0, withoutRun = 0, seen = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto project = folder.path() / fmt::format("{}.stepscope", round), saved = folder.path() / "s.safetensors";
    Child train({SS_PROGRAM, "train", kModel, "--data", kData, "--threads", "1", "--steps", "1000000000", "--project",
                 project.string(), "--save", saved.string(), "--set", "checkpoint.seconds=0.05"},
                folder.path() / "log.txt");
    // From the start, for what is created; from the first step that it told of, for what is recorded.
    if (round % 2 == 1)
      while (train.running() && contents(folder.path() / "log.txt").find("step ") == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // A busy machine may take longer than any delay until it writes the first one: some rounds wait for it.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (round % 4 == 1 && train.running() && std::chrono::steady_clock::now() < patience) {
      const auto reader = storage::Project::openReadOnly(project);
      const auto written = reader ? storage::readSteps(*reader, 1) : tl::make_unexpected(reader.error());
      if (written && !written->empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 500)(random)));
    std::int64_t committed = -1;
    if (round % 3 == 0) {
      const auto reader = storage::Project::openReadOnly(project);
      const auto before = reader ? storage::readSteps(*reader, 1) : tl::make_unexpected(reader.error());
      if (before && !before->empty()) committed = static_cast<std::int64_t>(before->size());
    }
    train.signal(SIGKILL);
    const int status = train.wait();
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ", status " << status << ": "
                                     << contents(folder.path() / "log.txt");
    if (std::filesystem::exists(project)) {
      const std::int64_t found = stepsIn(project, "interrupted");
      ASSERT_GE(found, committed) << "round " << round;
      (found < 0 ? withoutRun : steps) += found < 0 ? 1 : found;
      seen += committed > 0 ? 1 : 0;
    }
    // The checkpoint is a whole one of some step, or not there.
    if (std::filesystem::exists(saved)) {
      const Answer resumed =
          run("train " + kModel + " --data " + kData + " --steps 1 --resume --init-from " + saved.string(), folder.path());
      ASSERT_EQ(resumed.exitCode, 0) << "round " << round << ": " << resumed.text;
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) std::filesystem::remove_all(entry);
  }
  fmt::print("{} kills: {} steps found, {} files without a run, {} compared with what a reader saw before\n", rounds, steps,
             withoutRun, seen);
  EXPECT_GT(steps, 0) << "no step was ever committed: the test proves nothing";
}

TEST(Endurance, KilledRunsLoseNothingThatStood) { killRuns(8); }
TEST(Endurance, LongKilledRunsLoseNothingThatStood) { killRuns(1000); }

struct Sample {
  double part = 0;  // of the steps
  std::int64_t resident = 0, file = 0;
  int handles = 0, threads = 0;
};

std::int64_t sizeOf(const std::filesystem::path& path) {
  std::int64_t bytes = 0;
  for (const char* rest : {"", "-wal", "-shm"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path.string() + rest, error);
    bytes += error ? 0 : static_cast<std::int64_t>(size);
  }
  return bytes;
}

// Sampled by progress: the run prints one object per step.
void soak(std::int64_t steps, std::int64_t samples) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "soak.stepscope", log = folder.path() / "log.txt";
  Child train({SS_PROGRAM, "train", kModel, "--data", kData, "--threads", "1", "--steps", std::to_string(steps), "--set",
               "record=steps", "--project", project.string(), "--set", "checkpoint.seconds=5", "--save",
               (folder.path() / "s.safetensors").string(), "--json"},
              log);
  std::vector<Sample> all;
  const auto done = [&]() -> double {  // the last whole line of the log
    std::error_code error;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(log, error));
    std::ifstream file(log);
    file.seekg(std::max<std::int64_t>(0, size - 2000));
    std::ostringstream text;
    text << file.rdbuf();
    const auto at = text.str().rfind("\"step\":");
    return at == std::string::npos ? 0 : std::atof(text.str().c_str() + at + 7) / static_cast<double>(steps);
  };
  for (std::int64_t next = 1; train.running();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double part = done();
    if (part * static_cast<double>(samples) < static_cast<double>(next)) continue;
    const Sample sample{part, train.residentBytes(), sizeOf(project), train.handles(), train.threads()};
    if (sample.resident > 0) all.push_back(sample);
    next = static_cast<std::int64_t>(part * static_cast<double>(samples)) + 1;
  }
  const int status = train.wait();
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << contents(log).substr(0, 2000);
  EXPECT_EQ(stepsIn(project, "finished"), steps);
  ASSERT_GE(all.size(), 6U) << "too few samples to tell";
  for (const Sample& s : all)
    fmt::print("{:5.1f} %  resident {:7.1f} MiB  handles {}  threads {}  project {:8.1f} MiB\n", 100 * s.part,
               static_cast<double>(s.resident) / (1 << 20), s.handles, s.threads, static_cast<double>(s.file) / (1 << 20));
  // The first third warms up: buffers of the recorder and of SQLite fill to their bounds.
  const std::size_t warm = all.size() / 3;
  const Sample &from = all[warm], &to = all.back();
  EXPECT_LE(to.resident, from.resident + std::max<std::int64_t>(from.resident / 10, 4 << 20));
  EXPECT_LE(to.handles, from.handles + 2);  // a checkpoint that is being written
  EXPECT_LE(to.threads, from.threads + 1);  // the one that writes checkpoints begins with the first of them
  // The file grows by the step, no faster at the end than in the middle.
  const std::size_t middle = warm + (all.size() - warm) / 2;
  const auto growth = [](const Sample& a, const Sample& b) {
    return static_cast<double>(b.file - a.file) / std::max(1e-9, b.part - a.part);
  };
  EXPECT_LE(growth(all[middle], to), 1.5 * growth(from, all[middle]) + (8 << 20));
}

TEST(Endurance, NothingGrowsOverManySteps) { soak(10'000, 20); }
TEST(Endurance, LongNothingGrowsOverAMillionSteps) { soak(1'000'000, 40); }

}  // namespace
}  // namespace stepscope::testing
