#include "tests/engine/wire/conversation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/support/models.h"

namespace stepscope::testing {

Conversation talk(const std::string& bytes, std::uint32_t largestReply) {
  std::signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  EXPECT_EQ(pipe(in), 0);
  EXPECT_EQ(pipe(out), 0);
  static const snapshot::MachineInfo machine;
  Conversation conversation;
  std::thread writer([&] {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = write(in[1], bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    close(in[1]);
  });
  std::thread reader([&] {
    while (true) {
      auto frame = readFrame(out[0]);
      if (!frame) break;
      snapshot::Response response;
      EXPECT_TRUE(response.ParseFromString(*frame)) << "an answer must parse";
      conversation.responses.push_back(std::move(response));
    }
  });
  conversation.ended = serveWorker(in[0], out[1], machine, largestReply);
  close(out[1]);
  writer.join();
  reader.join();
  close(in[0]);
  close(out[0]);
  return conversation;
}

const snapshot::Response* answer(const Conversation& conversation, std::uint64_t id) {
  for (const auto& response : conversation.responses)
    if (response.id() == id && response.done()) return &response;
  ADD_FAILURE() << "no answer to request " << id;
  static const snapshot::Response none;
  return &none;
}

std::string frame(const std::string& bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string prefix(4, '\0');
  for (int i = 0; i < 4; ++i) prefix[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xff);
  return prefix + bytes;
}

std::string hello(std::uint64_t id) {
  return request(id, [](auto& r) { r.mutable_hello()->set_protocol(1); });
}

std::string openedAndBuilt() {
  const auto model = languageModel();
  std::string bytes = hello(1);
  bytes += request(2, [&](auto& r) { r.mutable_open()->set_path(model.model.string()); });
  bytes += request(3, [&](auto& r) {
    auto* setting = r.mutable_configure()->add_settings();
    setting->set_name("data");
    setting->set_value(model.data.string());
  });
  return bytes + request(4, [](auto& r) { r.mutable_build(); });
}

}  // namespace stepscope::testing
