#include "kernels/cuda_device/captured.h"

namespace stepscope::cuda {

#define SS_CU_TRY(expr)                                                      \
  do {                                                                       \
    if (const CuResult result = (expr); result != kCuSuccess) return result; \
  } while (false)

Captured::~Captured() {
  for (const Events* events : {&within_, &around_})
    for (CuEvent event : *events) driver_.eventDestroy(event);
}

CuResult Captured::need(Events& events, std::size_t count) {
  while (events.size() < count) {
    CuEvent event = nullptr;
    SS_CU_TRY(driver_.eventCreate(&event, kCuNoTiming));
    events.push_back(event);
  }
  return kCuSuccess;
}

CuResult Captured::join(std::span<const CuStream> streams, const Events& events) {
  for (std::size_t s = 1; s < streams.size(); ++s) {
    SS_CU_TRY(driver_.eventRecord(events[s], streams[s]));
    SS_CU_TRY(driver_.streamWait(streams[0], events[s], 0));
  }
  return kCuSuccess;
}

CuResult Captured::fork(std::span<const CuStream> streams, const Events& events) {
  if (streams.size() < 2) return kCuSuccess;
  SS_CU_TRY(driver_.eventRecord(events[0], streams[0]));
  for (std::size_t s = 1; s < streams.size(); ++s) SS_CU_TRY(driver_.streamWait(streams[s], events[0], 0));
  return kCuSuccess;
}

CuResult Captured::begin(std::span<const CuStream> streams) {
  SS_CU_TRY(need(within_, streams.size()));
  SS_CU_TRY(driver_.captureBegin(streams[0], kCuCaptureThreadLocal));
  const CuResult forked = fork(streams, within_);
  if (forked == kCuSuccess) return kCuSuccess;
  Made nothing;
  end(streams, &nothing);
  if (nothing.executable) driver_.graphExecDestroy(nothing.executable);
  return forked;
}

CuResult Captured::end(std::span<const CuStream> streams, Made* made) {
  const CuResult joined = join(streams, within_);
  CuGraph graph = nullptr;
  const CuResult ended = driver_.captureEnd(streams[0], &graph);
  CuResult result = joined != kCuSuccess ? joined : ended;
  std::size_t count = 0;
  if (result == kCuSuccess) result = driver_.graphNodes(graph, nullptr, &count);
  if (result == kCuSuccess) result = driver_.graphInstantiate(&made->executable, graph, 0);
  if (graph) driver_.graphDestroy(graph);
  made->operations = static_cast<std::int64_t>(count);
  return result;
}

CuResult Captured::launch(CuGraphExec executable, std::span<const CuStream> streams) {
  SS_CU_TRY(need(around_, streams.size()));  // there may be more than when it was captured
  SS_CU_TRY(join(streams, around_));
  SS_CU_TRY(driver_.graphLaunch(executable, streams[0]));
  return fork(streams, around_);
}

}  // namespace stepscope::cuda
