// memory_child MODEL VALUE [NAME=VALUE ...]: opens a model with these settings and prints a number and by how many bytes the
// peak of this process grew meanwhile. With a VALUE the number is the size of that weight in memory; with "step" the model
// is built, a step runs, and the number is what its plan says; with "by_hand" a second one is begun and finished by hand.
//
// A process of its own, started and not forked: what its parent had in memory and in threads is not there.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "engine/train/session.h"

namespace {

using namespace stepscope;

std::int64_t statusBytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtoll(line.c_str() + field.size(), nullptr, 10) * 1024;
  return 0;
}

Result<std::int64_t> work(int argc, char** argv) {
  SS_ASSIGN(const auto session, Session::open(argv[1], {}, {}));
  TrainOptions options;
  for (int i = 3; i < argc; ++i) {
    const std::string setting = argv[i];
    const std::size_t equals = setting.find('=');
    SS_TRY(applySetting(options, setting.substr(0, equals), setting.substr(equals + 1), "test"));
  }
  SS_TRY(session->setOptions(options));
  const bool byHand = std::string_view(argv[2]) == "by_hand";
  if (!byHand && std::string_view(argv[2]) != "step") {
    const Graph& graph = session->imported();
    return static_cast<std::int64_t>(graph.value(graph.findValue(argv[2])).data->bytes());
  }
  SS_TRY(session->build());
  SS_ASSIGN(const snapshot::StepRecord record, session->step());
  if (byHand) {
    SS_TRY(session->beginStep());
    SS_TRY(session->finishStep());
  }
  return record.planned_bytes();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::int64_t before = statusBytes("VmRSS:");
  const auto answer = work(argc, argv);
  if (!answer) {
    std::fprintf(stderr, "error: %s\n", answer.error().message.c_str());
    return 1;
  }
  std::printf("%lld %lld\n", static_cast<long long>(*answer), static_cast<long long>(statusBytes("VmHWM:") - before));
  return 0;
}
