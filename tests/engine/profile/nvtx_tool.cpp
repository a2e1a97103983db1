// A tool that takes NVTX ranges, as NVTX_INJECTION64_PATH names one: it writes what it is told as lines of text.
#include <cstring>
#include <string>

#include "engine/profile/nvtx.h"

using namespace stepscope::nvtx;

namespace {

std::string log;
int depth = 0;

const char* textOf(const Event* event) {
  if (event->version != 3 || event->size != sizeof(Event) || event->messageType != kText) return "not understood";
  return static_cast<const char*>(event->message);
}
void line(const std::string& text) { log += std::string(static_cast<std::size_t>(2 * depth), ' ') + text + "\n"; }

Domain createDomain(const char* name) {
  line(std::string("domain ") + name);
  return &log;
}
int push(Domain domain, const Event* event) {
  line(domain == &log ? textOf(event) : "of another domain");
  return depth++;
}
int pop(Domain) { return --depth; }
std::uint64_t start(Domain, const Event* event) {
  line(std::string("begin ") + textOf(event));
  return 17;
}
void end(Domain, std::uint64_t range) { line("end " + std::to_string(range)); }

}  // namespace

extern "C" {

int InitializeInjectionNvtx2(const void* (*exportTable)(std::uint32_t)) {
  const auto* const callbacks = static_cast<const Callbacks*>(exportTable(1));
  Slot** table = nullptr;
  unsigned count = 0;
  if (!callbacks || callbacks->size < sizeof(Callbacks) || !callbacks->functionsOf(kCore2, &table, &count)) return 0;
  if (count < kFunctions) return 0;
  *table[kDomainCreate] = reinterpret_cast<Slot>(createDomain);
  *table[kRangePush] = reinterpret_cast<Slot>(push);
  *table[kRangePop] = reinterpret_cast<Slot>(pop);
  *table[kRangeStart] = reinterpret_cast<Slot>(start);
  *table[kRangeEnd] = reinterpret_cast<Slot>(end);
  return 1;
}

// For the test: what was told so far.
const char* nvtxToolLog() { return log.c_str(); }
}
