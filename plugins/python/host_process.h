// SPDX-License-Identifier: Apache-2.0
//
// The child process that runs Python: started when the first node is defined, started again when it has died. Values go
// through shared memory, requests and answers through a socket (host.py has the protocol). Any thread; one request at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace stepscope::python {

class HostProcess {
 public:
  static HostProcess& instance();

  // Shared memory, 64-byte aligned; empty blocks have a size of 64 too. The address is that of at(offset), for good.
  std::size_t allocate(std::size_t bytes);
  void release(std::size_t offset);
  std::byte* at(std::size_t offset) const { return base_ + offset; }

  // A node as the host knows it: its number, and which of the processes that lived one after another knows it.
  struct Known {
    std::uint32_t id = 0;
    std::uint64_t process = 0;  // 0: none
  };

  // Runs the node with what lies in shared memory; defines it first when the process of now does not know it. `definition`:
  // JSON without its last brace. Errors as text, empty when all is well: Python that cannot be started, what an answer says,
  // a process that ended (by which signal) or took longer than STEPSCOPE_PYTHON_TIMEOUT seconds (60) and was ended.
  std::string run(Known& node, const std::string& definition, std::uint64_t seed);
  std::string define(Known& node, const std::string& definition);
  void forget(const Known& node);

  // Shapes of the results of what `request` describes (JSON), of a run on meta tensors: of each its rank and extents. Errors
  // likewise.
  std::string shapes(const std::string& request, std::string& answer);

  ~HostProcess();

 private:
  HostProcess() = default;
  bool share();  // maps the memory, once
  std::string start();
  std::string ask(const void* request, std::size_t bytes, std::string& answer);
  std::string defineLocked(Known& node, const std::string& definition);
  std::string ended();
  void stop();

  std::mutex mutex_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;                       // of the memory that has been asked for
  std::map<std::size_t, std::size_t> blocks_;  // offset → bytes, of those in use
  int memory_ = -1, socket_ = -1, life_ = -1, child_ = -1;
  std::uint64_t process_ = 0;
  bool running_ = false;
  std::array<char, std::size_t{1} << 17> received_{};
};

}  // namespace stepscope::python
