// Kernels for a device whose code comes with a shared library that a person loads (engine/plugin): an image for a GPU, and
// the same functions compiled for the host, which the emulator calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/space.h"
#include "kernels/status.h"

namespace stepscope {

// What the threads of a device run.
struct LibraryFunction {
  std::string name;  // its symbol in the image
  // One thread of the emulator. parameters[i] points at the bytes of parameter i; those of memory are the address of its
  // emulated::Memory, null where the operand is absent.
  void (*body)(const void* table, void* const* parameters) = nullptr;
};

// What one kernel brings. Devices keep what they make of it until it goes.
struct LibraryCode {
  std::string owner;                 // "plugin 'acme': kernel 'acme.Gate'", for errors
  std::string library;               // "plugin 'acme'"
  std::span<const std::byte> image;  // a fat binary or cubin, or PTX that ends with 0; empty: for the emulator alone
  std::vector<LibraryFunction> functions;
  const void* table = nullptr;                                         // what bodies get
  std::function<Status(const std::function<Status()>& work)> guarded;  // runs work that calls bodies
};

// As emulated::Access, whose numbers these are.
enum class LibraryAccess : std::uint8_t { kRead, kWrite, kPart, kReadWrite };

// An argument: memory of the device, or a value.
struct LibraryArgument {
  const char* what = nullptr;  // of memory: "input", "output", "scratch memory from byte"; null: a value
  std::size_t index = 0;       // which one
  std::byte* address = nullptr;
  std::int64_t count = 0;  // elements
  std::size_t elementBytes = 0;
  LibraryAccess access = LibraryAccess::kRead;
  const void* value = nullptr;
  std::size_t valueBytes = 0;
  std::optional<std::size_t> wordsAt;  // of a value: the byte where it has the address of two 64-bit words to read, or null
};

struct LibraryLaunch {
  std::shared_ptr<const LibraryCode> code;
  std::size_t function = 0;  // of code->functions
  std::int64_t blocks = 0;
  int threads = 0;
  std::span<const LibraryArgument> arguments;  // copied
  StreamId stream = 0;
};

// A device that runs such code. From any thread.
class LibraryLaunches {
 public:
  virtual ~LibraryLaunches() = default;
  // Why nodes of `op` run elsewhere: code that this device has no form of; empty when it has one. Of code that is wrong
  // launch() tells.
  virtual std::string whyNot(const std::shared_ptr<const LibraryCode>& code, const std::string& op) const = 0;
  // Puts it on its stream. Errors: kCorrupt, naming owner and function, for code that is wrong; those of Device::launch.
  virtual Status launch(const LibraryLaunch& launch) = 0;
  // The stream as the driver knows it; null where there is no driver.
  virtual Result<void*> nativeStream(StreamId stream) = 0;
};

// Of the device whose kernel runs in this thread; null: a kernel without such a device.
extern constinit thread_local LibraryLaunches* libraryLaunches;

// A kernel with such code.
class LibraryKernel {
 public:
  virtual ~LibraryKernel() = default;
  virtual const std::shared_ptr<const LibraryCode>& code() const = 0;
};

class KernelRegistry;
class Device;
struct KernelSpec;
// Whether a kernel that a library adds runs the spec on the device; nothing when none is there for it. The text says why
// not; it is empty when the device runs it, which holds too for a library whose `create` fails: it is to say so.
std::optional<std::string> whyNotByLibrary(const KernelRegistry& kernels, const Device& device, const KernelSpec& spec);

}  // namespace stepscope
