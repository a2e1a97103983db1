// Damaged project files: a typed error, or what can still be read; never a signal, and a recovered project is whole. A few
// hundred in CI; thousands with the label long.
#include <gtest/gtest.h>

#include <fstream>

#include "storage/queries.h"
#include "storage/report/report.h"
#include "storage/salvage.h"
#include "storage/sql.h"
#include "tests/fuzz/damages.h"
#include "tests/storage/sample_run.h"

namespace stepscope::testing {
namespace {

using namespace stepscope::storage;
using storage::testing::TemporaryFolder;

constexpr std::size_t kPage = 4096;

void zeroPage(std::string& bytes, Random& random) {
  const std::size_t page = below(random, bytes.size() / kPage);
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * kPage), kPage, '\0');
}
void exchangePages(std::string& bytes, Random& random) {
  const std::size_t a = below(random, bytes.size() / kPage), b = below(random, bytes.size() / kPage);
  for (std::size_t i = 0; i < kPage; ++i) std::swap(bytes[a * kPage + i], bytes[b * kPage + i]);
}
void losePages(std::string& bytes, Random& random) { bytes.resize((1 + below(random, bytes.size() / kPage)) * kPage); }

struct Counts {
  int refused = 0, whole = 0, partly = 0, recovered = 0;
};

void tryProject(const TemporaryFolder& folder, Counts& counts) {
  const auto file = folder / "damaged.stepscope", target = folder / "recovered.stepscope";
  if (const auto project = Project::openReadOnly(file)) {
    ++(project->warnings().empty() ? counts.whole : counts.partly);
    for (const char* name : {"r.html", "r.json", "r.trace.json", "r.csv"}) {
      const Status written = writeReport(*project, 0, folder / name);
      EXPECT_TRUE(written || !written.error().message.empty());
    }
    if (const auto run = newestRun(*project)) (void)readGraph(*project, *run);
    (void)runSql(*project, "SELECT count(*), sum(ns) FROM spans");
  } else {
    EXPECT_FALSE(project.error().message.empty());
    ++counts.refused;
  }
  std::filesystem::remove(target);
  if (!recoverProject(file, target)) return;
  ++counts.recovered;
  const auto again = Project::openReadOnly(target);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->warnings().empty()) << again->warnings().front();
}

void damageProjects(std::uint64_t rounds) {
  const TemporaryFolder folder;
  storage::testing::recordSample(folder / "a.stepscope", {1, 300});
  const std::string bytes = slurp(folder / "a.stepscope");
  constexpr void (*kOfPages[])(std::string&, Random&) = {zeroPage, exchangePages, losePages};
  Counts counts;
  for (std::uint64_t seed = 0; seed < rounds; ++seed) {
    Random random(seed);
    std::string some = bytes;
    if (seed % 2 == 0)
      kOfPages[seed / 2 % std::size(kOfPages)](some, random);
    else
      some = damaged(std::move(some), seed);
    std::ofstream(folder / "damaged.stepscope", std::ios::binary)
        .write(some.data(), static_cast<std::streamsize>(some.size()));
    tryProject(folder, counts);
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(counts.refused, 0);
  EXPECT_GT(counts.whole, 0);
  EXPECT_GT(counts.partly, 0);
  EXPECT_GT(counts.recovered, counts.partly);
}

TEST(ProjectMutation, NeverCrashes) { damageProjects(90); }
TEST(ProjectMutation, LongNeverCrashes) { damageProjects(3000); }

}  // namespace
}  // namespace stepscope::testing
