// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/model_peek.h"

#include <utility>

namespace stepscope {

void ModelPeek::read(const QString& path, const QString& missingWeights) {
  cancel();
  missingWeights_ = missingWeights;
  client_ = new WorkerClient(this);
  client_->start();
  snapshot::Request request;
  request.mutable_open()->set_path(path.toStdString());
  request.mutable_open()->set_missing_weights(missingWeights.toStdString());
  client_->request(std::move(request), QStringLiteral("reading"), [this, path, of = client_](const Delivery& d) {
    if (of != client_) return;
    const snapshot::Response& r = *d.response;
    if (r.has_model()) model_ = std::make_shared<const snapshot::ModelInfo>(r.model());
    if (!r.done()) return;
    const QString why = r.has_error() ? QString::fromStdString(r.error().message()) : QString();
    // Not from within the client's own call.
    QMetaObject::invokeMethod(
        this,
        [this, path, why, of] {
          if (of == client_) end(path, why);
        },
        Qt::QueuedConnection);
  });
}

void ModelPeek::end(const QString& path, const QString& why) {
  const ModelPtr model = std::exchange(model_, nullptr);
  cancel();
  if (why.isEmpty() && model)
    emit modelRead(path, model, missingWeights_);
  else
    emit refused(path, why, model);
}

void ModelPeek::cancel() {
  model_ = nullptr;
  if (!client_) return;
  client_->kill();
  std::exchange(client_, nullptr)->deleteLater();
}

}  // namespace stepscope
