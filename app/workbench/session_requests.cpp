// SPDX-License-Identifier: GPL-3.0-or-later
// What is asked of the worker: requests that move the session, those that only read, and its start.
#include <utility>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {

void Session::move(snapshot::Request request, const QString& what, Then then, Then failed,
                   std::function<void(const QString&)> refused) {
  setBusy(true);
  const bool wasInStep = store_.position().in_step();
  const std::int64_t step = store_.position().step();
  const int instruction = store_.position().instruction();
  client_.request(std::move(request), what,
                  [this, wasInStep, step, instruction, then = std::move(then), failed = std::move(failed),
                   refused = std::move(refused)](const Delivery& d) {
                    absorb(d);
                    if (!d.response->done()) return;
                    if (d.response->has_error()) {
                      interrupted_ = interrupted_ && d.response->error().code() == "cancelled";
                      running_ = running_ && interrupted_;
                    }
                    const Other rebuilt = client_.alive() ? std::exchange(rebuilt_, Other::kNone) : Other::kNone;
                    if (rebuilt == Other::kNone) setBusy(false);
                    Then next = then;
                    if (d.response->has_error()) {
                      const auto& error = d.response->error();
                      fault_ = QString::fromStdString(error.setting());
                      if (error.code() == "cancelled") {
                        if (!interrupted_) emit note(tr("Cancelled"));
                      } else if (error.code() != "worker_died" && refused) {
                        refused(QString::fromStdString(error.message()));
                      } else if (error.code() != "worker_died") {
                        emit problem(format::visible(error.message()), format::visible(error.code()));
                      }
                      next = failed;
                    } else if (const auto& p = store_.position(); rebuilt == Other::kNone && wasInStep && p.in_step() &&
                                                                  p.step() == step && p.instruction() < instruction) {
                      // The worker takes back with a step what was edited behind it.
                      std::erase_if(edits_,
                                    [&p](const Edit& e) { return e.step == p.step() && e.instruction > p.instruction(); });
                    }
                    if (rebuilt == Other::kRebuilt) shownWith_ = configuration_;
                    if (rebuilt != Other::kNone) {
                      refreshBuild([this, next, rebuilt, shown = store_.graph()] {
                        moveEdits(shown);
                        if (rebuilt == Other::kRebuilt)
                          emit planRebuilt();
                        else
                          emit planShown();
                        if (next) next();
                      });
                    } else if (next) {
                      next();
                    }
                  });
}

void Session::request(snapshot::Request request, const QString& what, WorkerClient::Callback callback, bool quiet) {
  const auto answer = [this, opened = opened_, callback = std::move(callback)](const Delivery& d) {
    if (opened == opened_) callback(d);
  };
  client_.request(std::move(request), what, answer, quiet);
}

void Session::ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer, bool quiet) {
  this->request(
      std::move(request), what,
      [this, answer = std::move(answer)](const Delivery& d) {
        if (d.response->has_error()) {
          const auto& error = d.response->error();
          if (error.code() != "worker_died" && error.code() != "cancelled") emit note(format::visible(error.message()));
        } else if (answer) {
          answer(d);
        } else {
          absorb(d);
        }
      },
      quiet);
}

void Session::begin(const Then& then) {
  if (client_.alive()) {
    then();
    return;
  }
  // One-shot: the context object goes with the first start.
  auto* once = new QObject(this);
  connect(&client_, &WorkerClient::started, once, [once, then] {
    once->deleteLater();
    then();
  });
  connect(&client_, &WorkerClient::died, once, &QObject::deleteLater);
  client_.start();
}

}  // namespace stepscope
