// The C interface of CUPTI's range profiler and of what prepares it, as far as this folder uses them, found at run time. As
// in cupti.h the declarations are our own, with the names, types and numbers of CUPTI 13; CUPTI has them since 12.6. Every
// function takes a structure that begins with its size, as far as its caller knows it, and a null pointer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_device/cupti.h"

namespace stepscope::cuda {

// Results of note.
inline constexpr CuptiResult kCuptiNoRights = 35;         // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
inline constexpr CuptiResult kCuptiNoRightsVirtual = 40;  // the same of a virtual GPU
enum : std::int32_t { kCuptiRangeProfiler = 0 };          // CUpti_ProfilerType
enum : std::int32_t { kCuptiUserRange = 2 };              // CUpti_ProfilerRange
enum : std::int32_t { kCuptiUserReplay = 3 };             // CUpti_ProfilerReplayMode

// Bytes from the beginning of `type` to the end of `last`: sizes are told without padding behind.
#define SS_SIZE_UP_TO(type, last) (offsetof(type, last) + sizeof(type::last))

// For who needs to say nothing.
struct CuptiNothing {
  std::size_t size = SS_SIZE_UP_TO(CuptiNothing, none);
  void* none = nullptr;
};
// Which chip a GPU is, and which of its counters can be had in a context.
struct CuptiChipName {
  std::size_t size = SS_SIZE_UP_TO(CuptiChipName, name);
  void* none = nullptr;
  std::size_t device = 0;
  const char* name = nullptr;
};
struct CuptiAvailability {
  std::size_t size = SS_SIZE_UP_TO(CuptiAvailability, image);
  void* none = nullptr;
  CuContext context = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;  // null: the size is asked for
};

// --- of the host: what is to be counted
struct CuptiHostMake {
  std::size_t size = SS_SIZE_UP_TO(CuptiHostMake, host);
  void* none = nullptr;
  std::int32_t profiler = kCuptiRangeProfiler;
  const char* chip = nullptr;
  const std::uint8_t* availability = nullptr;
  void* host = nullptr;
};
struct CuptiHost {
  std::size_t size = SS_SIZE_UP_TO(CuptiHost, host);
  void* none = nullptr;
  void* host = nullptr;
};
struct CuptiHostMetrics {
  std::size_t size = SS_SIZE_UP_TO(CuptiHostMetrics, count);
  void* none = nullptr;
  void* host = nullptr;
  const char** names = nullptr;
  std::size_t count = 0;
};
struct CuptiHostConfigSize {
  std::size_t size = SS_SIZE_UP_TO(CuptiHostConfigSize, bytes);
  void* none = nullptr;
  void* host = nullptr;
  std::size_t bytes = 0;
};
struct CuptiHostConfig {
  std::size_t size = SS_SIZE_UP_TO(CuptiHostConfig, image);
  void* none = nullptr;
  void* host = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
};
struct CuptiPasses {
  std::size_t size = SS_SIZE_UP_TO(CuptiPasses, passes);
  void* none = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
  std::size_t passes = 0;
};
struct CuptiValues {
  std::size_t size = SS_SIZE_UP_TO(CuptiValues, values);
  void* none = nullptr;
  void* host = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0, range = 0;
  const char** names = nullptr;
  std::size_t count = 0;
  double* values = nullptr;
};

// --- of the target: when it is counted
struct CuptiEnable {
  std::size_t size = SS_SIZE_UP_TO(CuptiEnable, profiler);
  void* none = nullptr;
  CuContext context = nullptr;
  void* profiler = nullptr;
};
struct CuptiProfiler {
  std::size_t size = SS_SIZE_UP_TO(CuptiProfiler, profiler);
  void* none = nullptr;
  void* profiler = nullptr;
};
struct CuptiDataSize {
  std::size_t size = SS_SIZE_UP_TO(CuptiDataSize, bytes);
  void* none = nullptr;
  void* profiler = nullptr;
  const char** names = nullptr;
  std::size_t count = 0, mostRanges = 0;
  std::uint32_t mostNodes = 0;
  std::size_t bytes = 0;
};
struct CuptiDataMake {
  std::size_t size = SS_SIZE_UP_TO(CuptiDataMake, data);
  void* none = nullptr;
  void* profiler = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* data = nullptr;
};
struct CuptiConfigure {
  std::size_t size = SS_SIZE_UP_TO(CuptiConfigure, targetLevel);
  void* none = nullptr;
  void* profiler = nullptr;
  std::size_t configBytes = 0;
  const std::uint8_t* config = nullptr;
  std::size_t dataBytes = 0;
  std::uint8_t* data = nullptr;
  std::int32_t range = kCuptiUserRange, replay = kCuptiUserReplay;
  std::size_t mostRanges = 0;
  std::uint16_t levels = 1, leastLevel = 1;
  std::size_t pass = 0;
  std::uint16_t targetLevel = 0;
};
struct CuptiStop {
  std::size_t size = SS_SIZE_UP_TO(CuptiStop, all);
  void* none = nullptr;
  void* profiler = nullptr;
  std::size_t pass = 0, targetLevel = 0;
  std::uint8_t all = 0;  // whether all passes have run
};
struct CuptiPush {
  std::size_t size = SS_SIZE_UP_TO(CuptiPush, name);
  void* none = nullptr;
  void* profiler = nullptr;
  const char* name = nullptr;
};
struct CuptiDecode {
  std::size_t size = SS_SIZE_UP_TO(CuptiDecode, dropped);
  void* none = nullptr;
  void* profiler = nullptr;
  std::size_t dropped = 0;
};
struct CuptiDataInfo {
  std::size_t size = SS_SIZE_UP_TO(CuptiDataInfo, ranges);
  void* none = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0, ranges = 0;
};
struct CuptiRangeInfo {
  std::size_t size = SS_SIZE_UP_TO(CuptiRangeInfo, name);
  void* none = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0, range = 0;
  const char* delimiter = nullptr;
  const char* name = nullptr;
};

// One line per function: member, symbol, its structure, the toolkit's.
#define SS_CUPTI_RANGE_FUNCTIONS(F)                                                                                      \
  F(initialise, cuptiProfilerInitialize, CuptiNothing, CUpti_Profiler_Initialize_Params)                                 \
  F(chipName, cuptiDeviceGetChipName, CuptiChipName, CUpti_Device_GetChipName_Params)                                    \
  F(availability, cuptiProfilerGetCounterAvailability, CuptiAvailability, CUpti_Profiler_GetCounterAvailability_Params)  \
  F(hostMake, cuptiProfilerHostInitialize, CuptiHostMake, CUpti_Profiler_Host_Initialize_Params)                         \
  F(hostDrop, cuptiProfilerHostDeinitialize, CuptiHost, CUpti_Profiler_Host_Deinitialize_Params)                         \
  F(addMetrics, cuptiProfilerHostConfigAddMetrics, CuptiHostMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)        \
  F(configSize, cuptiProfilerHostGetConfigImageSize, CuptiHostConfigSize, CUpti_Profiler_Host_GetConfigImageSize_Params) \
  F(config, cuptiProfilerHostGetConfigImage, CuptiHostConfig, CUpti_Profiler_Host_GetConfigImage_Params)                 \
  F(passes, cuptiProfilerHostGetNumOfPasses, CuptiPasses, CUpti_Profiler_Host_GetNumOfPasses_Params)                     \
  F(values, cuptiProfilerHostEvaluateToGpuValues, CuptiValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params)           \
  F(enable, cuptiRangeProfilerEnable, CuptiEnable, CUpti_RangeProfiler_Enable_Params)                                    \
  F(disable, cuptiRangeProfilerDisable, CuptiProfiler, CUpti_RangeProfiler_Disable_Params)                               \
  F(dataSize, cuptiRangeProfilerGetCounterDataSize, CuptiDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params)        \
  F(dataMake, cuptiRangeProfilerCounterDataImageInitialize, CuptiDataMake,                                               \
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params)                                                              \
  F(configure, cuptiRangeProfilerSetConfig, CuptiConfigure, CUpti_RangeProfiler_SetConfig_Params)                        \
  F(start, cuptiRangeProfilerStart, CuptiProfiler, CUpti_RangeProfiler_Start_Params)                                     \
  F(stop, cuptiRangeProfilerStop, CuptiStop, CUpti_RangeProfiler_Stop_Params)                                            \
  F(push, cuptiRangeProfilerPushRange, CuptiPush, CUpti_RangeProfiler_PushRange_Params)                                  \
  F(pop, cuptiRangeProfilerPopRange, CuptiProfiler, CUpti_RangeProfiler_PopRange_Params)                                 \
  F(decode, cuptiRangeProfilerDecodeData, CuptiDecode, CUpti_RangeProfiler_DecodeData_Params)                            \
  F(dataInfo, cuptiRangeProfilerGetCounterDataInfo, CuptiDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params)        \
  F(rangeInfo, cuptiRangeProfilerCounterDataGetRangeInfo, CuptiRangeInfo,                                                \
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params)

struct CuptiRanges {
#define SS_CUPTI_RANGE_MEMBER(member, symbol, ours, theirs) CuptiResult (*member)(ours * parameters) = nullptr;
  SS_CUPTI_RANGE_FUNCTIONS(SS_CUPTI_RANGE_MEMBER)
#undef SS_CUPTI_RANGE_MEMBER

  // Of the library that Cupti::load finds. Errors: kUnsupported, for people.
  static Result<const CuptiRanges*> load();
};

}  // namespace stepscope::cuda
