#include "engine/profile/nvtx.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <optional>

namespace stepscope::nvtx {
namespace {

constexpr unsigned kCallbackTable = 1;  // NVTX_ETID_CALLBACKS
using Initialise = int (*)(const void* (*exportTable)(std::uint32_t));

// What the tool fills in; those of other modules too, which a tool may ask for and nothing here calls.
Slot functions[kModules][32];
Slot* slots[kModules][33];

int functionsOf(unsigned module, Slot*** table, unsigned* count) {
  if (module == 0 || module >= kModules) return 0;
  for (unsigned i = 0; i < 32; ++i) slots[module][i] = &functions[module][i];
  *table = slots[module];
  *count = module == kCore2 ? static_cast<unsigned>(kFunctions) : 32;
  return 1;
}
const Callbacks kCallbacks{sizeof(Callbacks), functionsOf};
const void* exportTable(std::uint32_t id) { return id == kCallbackTable ? &kCallbacks : nullptr; }

template <typename R, typename... P>
R call(unsigned function, P... arguments) {
  const Slot slot = functions[kCore2][function];
  if (!slot) return R();
  return reinterpret_cast<R (*)(P...)>(slot)(arguments...);
}

Event eventOf(const std::string& text, std::uint32_t colour) {
  Event event;
  event.colourType = kColourArgb;
  event.colour = colour;
  event.messageType = kText;
  event.message = text.c_str();
  return event;
}

}  // namespace

Result<const Tool*> Tool::load() {
  static std::mutex mutex;
  static std::optional<Tool> loaded;
  const std::lock_guard lock(mutex);
  if (loaded) return &*loaded;
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path || !*path) return unsupported("no tool asks for NVTX ranges (NVTX_INJECTION64_PATH is not set)");
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return unsupported(std::string("the tool that asks for NVTX ranges cannot be loaded: ") + dlerror());
  const auto initialise = reinterpret_cast<Initialise>(dlsym(library, "InitializeInjectionNvtx2"));
  if (!initialise || initialise(exportTable) == 0)
    return unsupported(std::string("the library '") + path + "' takes no NVTX ranges; expected a tool of NVTX 3");
  loaded.emplace();
  loaded->domain_ = call<Domain>(kDomainCreate, "stepscope");
  return &*loaded;
}

void Tool::push(const std::string& text, std::uint32_t colour) const {
  const Event event = eventOf(text, colour);
  call<int>(kRangePush, domain_, &event);
}
void Tool::pop() const { call<int>(kRangePop, domain_); }
std::uint64_t Tool::start(const std::string& text, std::uint32_t colour) const {
  const Event event = eventOf(text, colour);
  return call<std::uint64_t>(kRangeStart, domain_, &event);
}
void Tool::end(std::uint64_t range) const { call<void>(kRangeEnd, domain_, range); }

}  // namespace stepscope::nvtx
