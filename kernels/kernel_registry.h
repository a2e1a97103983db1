// Which kernels there are: found by op, device and element type. Filled once from explicit lists, then only read; the list
// can be printed without making a kernel.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope {

// The device whose kernels serve every other one: plain loops for every op and dtype.
inline constexpr std::string_view kReferenceDevice = "reference";
std::string_view deviceName(Backend backend);  // "reference", "cpu"

class KernelRegistry {
 public:
  // Adds the kernels of one device ("cpu", "reference", …). Names of domains and ops and what `user` points at must outlive
  // the registry. Errors: kInvalidArgument, naming the entry, when it has no op or no factory, or takes an element type that
  // an earlier one of that op and device takes.
  Status add(std::string_view device, std::span<const KernelEntry> entries);

  // Finds and makes the kernel: that of `device`; where it has none or answers kUnsupported, for operands in float16 or
  // bfloat16 that of float32 in slabs (slab_kernel.h) or between casts (converted_kernel.h); else the reference kernel. A
  // kernel that does not know the layouts of the operands runs between reorders into workspace memory. Errors:
  // kUnsupported when no list has the op, and whatever the factory answers.
  Result<std::unique_ptr<Kernel>> make(std::string_view device, const KernelSpec& spec) const;

  // Whether the device itself has kernels of the op.
  bool has(std::string_view device, std::string_view domain, std::string_view op) const;

  struct Listed {
    std::string device;
    KernelEntry entry;
  };
  // In the order in which they were added.
  std::span<const Listed> all() const { return all_; }

 private:
  // Indices into all_, by "domain\nop"; never iterated.
  using Table = std::unordered_map<std::string, std::vector<std::size_t>>;
  const std::vector<std::size_t>* entriesOf(std::string_view device, std::string_view domain, std::string_view op) const;
  Result<std::unique_ptr<Kernel>> makeOn(std::string_view device, const KernelSpec& spec, bool plain) const;
  Result<std::unique_ptr<Kernel>> makeInSlabs(std::string_view device, const KernelSpec& spec) const;

  std::vector<Listed> all_;
  std::map<std::string, Table, std::less<>> byDevice_;
};

// Those of the built-in lists.
const KernelRegistry& builtInKernels();

}  // namespace stepscope
