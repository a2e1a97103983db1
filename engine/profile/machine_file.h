// A machine that is described in a file, for predictions about it: what `stepscope doctor --json` says of one, or the same
// written by hand from a data sheet.
//
//   {"name": "node 7", "memory_bytes": 25769803776,
//    "peak": {"threads": 32, "operations_per_second": 2.1e12, "bfloat16_operations_per_second": 8.4e12,
//             "levels": [{"name": "shared cache", "capacity": 33554432, "bytes_per_second": 4e11},
//                        {"name": "memory", "bytes_per_second": 2e11}]}}
//
// Levels are fastest first; the last one has no capacity and stands for memory. "name", "threads" and the bfloat16 figure
// may be left out; other members are passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/loops/machine_peak.h"
#include "kernels/status.h"

namespace stepscope {

struct MachineFile {
  MachineFile() = default;
  MachineFile(const MachineFile&) = delete;
  MachineFile& operator=(const MachineFile&) = delete;

  std::string name;
  std::int64_t memoryBytes = 0;  // 0: not said
  cpu::MachinePeak peak;         // its levels borrow their names from `levelNames`
  std::vector<std::unique_ptr<std::string>> levelNames;
};

// `text`: JSON. `what` names it in errors, which say which member is wrong, what was found and what was expected.
Result<std::unique_ptr<MachineFile>> parseMachine(std::string_view text, const std::string& what);

}  // namespace stepscope
