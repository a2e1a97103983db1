// The program when one request for memory is refused, each in turn: a typed error or success, never a signal, and a project
// that opens. CI tries some hundred of them; the label `long` tries ten times as many.
#include <gtest/gtest.h>

#include "storage/project.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kModel = SS_SAMPLES "/digits/model.onnx";

struct Work {
  const char* name;
  std::string arguments;  // PROJECT: the project that the work writes, or reads
  bool reads = false;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.arguments; }

class Allocations : public ::testing::TestWithParam<Work> {
 protected:
  struct Counts {
    int typed = 0, fine = 0, died = 0;
    std::string first;  // of those that died
  };

  // Without `failing`, counts the requests.
  Answer runWith(const std::string& setting) {
    std::string arguments = GetParam().arguments;
    const auto project = folder_.path() / "p.stepscope";
    if (!GetParam().reads)
      for (const char* rest : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(project.string() + rest);
    if (const auto at = arguments.find("PROJECT"); at != std::string::npos) arguments.replace(at, 7, project.string());
    const auto log = folder_.path() / "log.txt";
    const int status = std::system(fmt::format("LD_PRELOAD={} OMP_NUM_THREADS=1 {} {} {} > {} 2>&1", SS_FAILING_ALLOCATIONS,
                                               setting, SS_PROGRAM, arguments, log.string())
                                       .c_str());
    // The shell tells a signal as 128 + its number.
    return {WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1, contents(log)};
  }

  // `lasting`: large requests are refused from then on.
  void refuse(long tries, bool lasting) {
    if (GetParam().reads) {
      const auto project = (folder_.path() / "p.stepscope").string();
      ASSERT_EQ(run("train " + kModel + " --steps 3 --project " + project, folder_.path()).exitCode, 0);
    }
    const auto file = folder_.path() / "count";
    ASSERT_EQ(runWith("STEPSCOPE_COUNT_ALLOCATIONS=" + file.string()).exitCode, 0);
    const long requests = std::stol(contents(file));
    ASSERT_GT(requests, 1000);
    Counts counts;
    // Close together at the beginning, where each is another place; spread over the rest.
    for (long i = 0; i < tries; ++i) {
      const long request = 1 + (requests - 1) * i / tries;
      const Answer answer =
          runWith(fmt::format("STEPSCOPE_FAIL_ALLOCATION={}{}", request, lasting ? " STEPSCOPE_FAIL_LARGE=1" : ""));
      const bool said =
          answer.text.find("error: ") != std::string::npos || answer.text.find("warning: ") != std::string::npos;
      if (answer.exitCode == 0) {
        ++counts.fine;
      } else if ((answer.exitCode == 1 || answer.exitCode == 2) && said) {
        ++counts.typed;
      } else if (counts.died++ == 0) {
        counts.first = fmt::format("request {} of {}: exit {}\n{}", request, requests, answer.exitCode, answer.text);
      }
      const auto project = folder_.path() / "p.stepscope";
      if (std::filesystem::exists(project)) {
        const auto opened = storage::Project::openForWriting(project);
        EXPECT_TRUE(opened) << "request " << request << ": " << opened.error().message;
      }
    }
    RecordProperty("typed", counts.typed);
    RecordProperty("fine", counts.fine);
    EXPECT_EQ(counts.died, 0) << counts.first;
    EXPECT_GT(counts.typed + counts.fine, 0);
  }

  const TemporaryFolder folder_;
};

TEST_P(Allocations, ThatFailAreTypedErrors) { refuse(40, false); }
TEST_P(Allocations, ThatFailForGoodAreTypedErrors) { refuse(40, true); }
TEST_P(Allocations, LongThatFailAreTypedErrors) { refuse(1000, false); }

INSTANTIATE_TEST_SUITE_P(Program, Allocations,
                         ::testing::Values(Work{"Inspect", "inspect " + kModel}, Work{"Build", "build " + kModel},
                                           Work{"Train", "train " + kModel + " --steps 3 --project PROJECT"},
                                           Work{"Report", "report PROJECT -o /dev/shm/stepscope-allocations.html", true}),
                         [](const auto& info) { return info.param.name; });

// A machine that gives no more address space: libraries that ask the system themselves (generated code, stacks) do not
// survive it, so what they need is asked for before.
TEST(AddressSpace, ThatRunsOutEndsWithAnExitCode) {
  const TemporaryFolder folder;
  const auto codeWith = [&](long kilobytes) {
    const int status = std::system(fmt::format("ulimit -v {}; exec {} train {} --steps 2 --threads 1 > {} 2>&1", kilobytes,
                                               SS_PROGRAM, kModel, (folder.path() / "log.txt").string())
                                       .c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1;
  };
  long tooLittle = 16 << 10, enough = 16 << 20;  // KiB
  ASSERT_EQ(codeWith(enough), 0) << contents(folder.path() / "log.txt");
  while (enough - tooLittle > 256) {
    const long middle = (tooLittle + enough) / 2;
    (codeWith(middle) == 0 ? enough : tooLittle) = middle;
  }
  int failed = 0;
  for (int i = 1; i <= 24; ++i) {
    const int code = codeWith(enough - i * 1024);
    EXPECT_GE(code, 0) << "a signal, " << i << " MiB below what is enough";
    failed += code == 1 ? 1 : 0;
  }
  EXPECT_GT(failed, 0) << "the program was never reached: the test proves nothing";
}

}  // namespace
}  // namespace stepscope::testing
