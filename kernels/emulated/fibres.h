// Stacks on which the threads of a block run. They are kept from launch to launch.
#pragma once

#include <memory>
#include <vector>

namespace stepscope::emulated {

class Launch;
struct Lane;

class Fibres {
 public:
  Fibres();
  ~Fibres();
  // Lets lane `thread` of the launch's block run until it waits or ends, with its stack if it has one. A stack whose thread
  // ends begins the next thread that has not begun.
  void resume(Launch& launch, int thread);
  // Gives the processor back to whoever called resume(). Called on a fibre.
  void yield();
  // Ends all threads that wait, with their destructors: after a fault.
  void clear();

 private:
  struct Stack;
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<Stack*> idle_;
  std::vector<Stack*> ofLane_;
  Stack* running_ = nullptr;
};

}  // namespace stepscope::emulated
