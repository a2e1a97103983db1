// A program that runs while a test looks at it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stepscope::testing {

class Child {
 public:
  // Its output goes to `log`.
  Child(const std::vector<std::string>& command, const std::filesystem::path& log);
  ~Child();  // killed where it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool running();
  void signal(int number);
  int wait();  // status of waitpid

  std::int64_t residentBytes() const;  // 0 when it is gone
  int handles() const;                 // open descriptors
  int threads() const;

 private:
  pid_t id_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace stepscope::testing
