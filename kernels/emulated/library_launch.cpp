#include "kernels/emulated/library_launch.h"

#include <fmt/format.h>

#include <boost/context/fiber.hpp>
#include <cstring>
#include <exception>

namespace stepscope::emulated {
namespace {

// The bytes of the parameters, and where each begins.
struct Parameters {
  std::vector<std::uint64_t> words;
  std::vector<void*> places;
};

Parameters parametersOf(const LibraryLaunch& described, Launch& launch) {
  Parameters made;
  std::vector<std::size_t> begins;
  const auto add = [&](const void* bytes, std::size_t count) {
    begins.push_back(made.words.size());
    made.words.resize(begins.back() + (count + 15) / 16 * 2);  // 16-byte aligned, as a struct may ask
    if (count > 0) std::memcpy(made.words.data() + begins.back(), bytes, count);
  };
  for (const LibraryArgument& one : described.arguments) {
    if (one.what == nullptr) {
      add(one.value, one.valueBytes);
      if (!one.wordsAt) continue;
      // An address of the device is a handle here.
      std::byte* const at = reinterpret_cast<std::byte*>(made.words.data() + begins.back()) + *one.wordsAt;
      std::byte* address = nullptr;
      std::memcpy(&address, at, sizeof(address));
      if (address == nullptr) continue;
      const Memory* const memory = launch.addOperand("seed and step", address, 2, sizeof(std::uint64_t), Access::kRead);
      std::memcpy(at, &memory, sizeof(memory));
      continue;
    }
    const Memory* const memory = one.address == nullptr
                                     ? nullptr
                                     : launch.addOperand(fmt::format("{} {}", one.what, one.index), one.address, one.count,
                                                         one.elementBytes, static_cast<Access>(one.access));
    add(&memory, sizeof(memory));
  }
  for (const std::size_t begin : begins) made.places.push_back(made.words.data() + begin);
  return made;
}

}  // namespace

std::unique_ptr<Launch> libraryLaunch(const LibraryLaunch& described) {
  auto launch = std::make_unique<Launch>();
  const LibraryFunction& function = described.code->functions[described.function];
  launch->rename(fmt::format("{} ({})", function.name, described.code->library));
  const auto parameters = std::make_shared<const Parameters>(parametersOf(described, *launch));
  launch->prepare(described.blocks, described.threads, [code = described.code, body = function.body, parameters] {
    try {
      body(code->table, parameters->places.data());
    } catch (const Fault&) {
      throw;
    } catch (const boost::context::detail::forced_unwind&) {
      throw;  // the launch has ended, and the fibre goes
    } catch (const std::exception& error) {
      runningLaunch->fault(fmt::format("threw '{}'", error.what()));
    } catch (...) {
      runningLaunch->fault("threw an exception");
    }
  });
  return launch;
}

}  // namespace stepscope::emulated
