// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_threads.h"

#include <new>
#include <utility>

namespace stepscope {

ProjectThreads::ProjectThreads() : core_(std::make_shared<Core>()), ending_(std::make_shared<std::atomic<bool>>(false)) {
  for (QThreadPool* pool : {&recorders_, &readers_, &queries_}) {
    pool->setMaxThreadCount(1);
    pool->setThreadPriority(QThread::LowPriority);
  }
}

void ProjectThreads::finish() {
  *ending_ = true;
  recorders_.waitForDone();
  readers_.waitForDone();
  queries_.waitForDone();
}

void ProjectThreads::run(const std::function<void()>& job) {
  try {
    job();
  } catch (const std::bad_alloc&) {
    back([this] { emit outOfMemory(); });
  }
  --jobs_;
}

void ProjectThreads::post(Job job) {
  ++jobs_;
  ++posted_;
  recorders_.start([this, core = core_, job = std::move(job)] { run([&] { job(*core); }); });
}

void ProjectThreads::read(Question question, Reader reader) {
  ++jobs_;
  post([this, question = std::move(question), reader](Core& core) {
    if (core.recorder) (void)core.recorder->flush();
    const auto ask = [this, path = core.path, question, ending = ending_] {
      run([&] {
        if (!*ending) question(path);
      });
    };
    (reader == Reader::kSql ? queries_ : readers_).start(ask, reader == Reader::kRefill ? -1 : 0);
  });
}

void ProjectThreads::back(std::function<void()> then) {
  QMetaObject::invokeMethod(this, std::move(then), Qt::QueuedConnection);
}

}  // namespace stepscope
