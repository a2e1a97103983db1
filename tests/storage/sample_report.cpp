// storage_sample_report FOLDER [BLOCKS STEPS [project]]: writes sample.stepscope and every kind of report into FOLDER; with
// "project" no report.
#include <cstdio>
#include <cstdlib>

#include "storage/report/report.h"
#include "tests/storage/sample_run.h"

int main(int argc, char** argv) {
  using namespace stepscope::storage;
  if (argc < 2) {
    std::fprintf(stderr, "usage: storage_sample_report FOLDER [BLOCKS STEPS]\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto file = folder / "sample.stepscope";
  std::filesystem::remove(file);
  testing::SampleSize size;
  if (argc >= 4) size = {std::atoi(argv[2]), std::atoi(argv[3])};
  testing::recordSample(file, size);
  if (argc >= 5) return 0;
  const auto project = Project::openReadOnly(file);
  for (const char* name : {"report.html", "report.json", "report.csv", "report.ops.csv", "report.instructions.csv",
                           "report.phases.csv", "report.trace.json"}) {
    const Status status = writeReport(*project, 0, folder / name);
    if (!status) std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  }
  return 0;
}
