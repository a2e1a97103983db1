#include "kernels/emulated/fibres.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <utility>

#include "kernels/emulated/launch.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace stepscope::emulated {
namespace {
constexpr std::size_t kStackBytes = 64 * 1024;
}

struct Fibres::Stack {
  boost::context::fiber fibre, host;
  Launch* launch = nullptr;
  int thread = 0;
  bool busy = false;
  // AddressSanitizer is told of every switch, or it takes one stack for another.
  void* fake = nullptr;
  const void* hostBottom = nullptr;
  std::size_t hostSize = 0;
  const void* bottom = nullptr;
  std::size_t size = 0;

  void entered() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &hostBottom, &hostSize);
#endif
  }
  void leave() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake, hostBottom, hostSize);
#endif
    host = std::move(host).resume();
    entered();
  }
};

Fibres::Fibres() = default;
Fibres::~Fibres() = default;

void Fibres::clear() {
  running_ = nullptr;
  idle_.clear();
  ofLane_.clear();
  stacks_.clear();
}

void Fibres::resume(Launch& launch, int thread) {
  if (ofLane_.size() < static_cast<std::size_t>(launch.threads()))
    ofLane_.resize(static_cast<std::size_t>(launch.threads()));
  Stack*& own = ofLane_[static_cast<std::size_t>(thread)];
  if (!own) {
    if (idle_.empty()) {
      auto stack = std::make_unique<Stack>();
      Stack* const at = stack.get();
      boost::context::fixedsize_stack memory(kStackBytes);
      boost::context::stack_context context = memory.allocate();
      at->bottom = static_cast<const char*>(context.sp) - context.size;
      at->size = context.size;
      at->fibre = boost::context::fiber(std::allocator_arg, boost::context::preallocated(context.sp, context.size, context),
                                        std::move(memory), [this, at](boost::context::fiber&& host) {
                                          at->host = std::move(host);
                                          at->entered();
                                          for (;;) {
                                            for (Lane* lane = &at->launch->lanes_[static_cast<std::size_t>(at->thread)];
                                                 lane != nullptr;) {
                                              Launch& running = *at->launch;
                                              at->thread = lane->thread;
                                              ofLane_[static_cast<std::size_t>(lane->thread)] = at;
                                              running.lane = lane;
                                              try {
                                                running.body_();
                                              } catch (const Fault& fault) {
                                                if (running.fault_.empty()) running.fault_ = fault.what();
                                              }
                                              running.lane->state = Lane::State::kEnded;
                                              ofLane_[static_cast<std::size_t>(at->thread)] = nullptr;
                                              lane = running.fault_.empty() ? running.nextUnstarted() : nullptr;
                                            }
                                            at->busy = false;
                                            idle_.push_back(at);
                                            at->leave();
                                          }
                                          return std::move(at->host);
                                        });
      stacks_.push_back(std::move(stack));
      idle_.push_back(at);
    }
    own = idle_.back();
    idle_.pop_back();
    own->launch = &launch;
    own->thread = thread;
    own->busy = true;
  }
  Stack* const stack = own;
  running_ = stack;
  launch.lane = &launch.lanes_[static_cast<std::size_t>(thread)];
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack->bottom, stack->size);
#endif
  stack->fibre = std::move(stack->fibre).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  running_ = nullptr;
}

void Fibres::yield() { running_->leave(); }

}  // namespace stepscope::emulated
