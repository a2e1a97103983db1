// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/window_driver.h"

#include <unistd.h>

#include <QAbstractItemModel>
#include <QFileDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <limits>

#include "views/common/turns.h"
#include "views/open_dialog/set_up_dialog.h"

namespace stepscope {

std::vector<TestModel> bundledModels() {
  std::vector<TestModel> models;
  for (const char* name : {"digits", "language_model"}) {
    const QString folder = QStringLiteral(SOURCE_FOLDER "/app/samples/") + QLatin1String(name);
    models.push_back({QLatin1String(name), folder + QStringLiteral("/model.onnx"), folder + QStringLiteral("/batches.npz")});
  }
  return models;
}

std::optional<TestModel> corpusModel(const QString& name, QString* missing) {
  const QString folder = QDir::cleanPath(QStringLiteral(SOURCE_FOLDER "/../shared/corpus/") + name);
  if (!QFileInfo::exists(folder + QStringLiteral("/model.onnx"))) {
    *missing = QStringLiteral("corpus model '%1': not at %2").arg(name, folder);
    return std::nullopt;
  }
  return TestModel{name, folder + QStringLiteral("/model.onnx"), folder + QStringLiteral("/batches.npz")};
}

bool writeDigits(const QString& path, int entries, int poisoned) {
  constexpr int kBatch = 32, kPixels = 64;
  std::vector<float> image(static_cast<std::size_t>(entries) * kBatch * kPixels);
  std::vector<qint64> label(static_cast<std::size_t>(entries) * kBatch);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 7 % 17) / 17.0f;
  for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<qint64>(i % 10);
  if (poisoned >= 0)
    image[(static_cast<std::size_t>(poisoned) * kBatch + 3) * kPixels + 5] = std::numeric_limits<float>::quiet_NaN();
  const qint64 imageBytes = static_cast<qint64>(image.size() * sizeof(float)),
               labelBytes = static_cast<qint64>(label.size() * sizeof(qint64));
  const QByteArray header =
      QStringLiteral(
          R"({"image":{"dtype":"F32","shape":[%1,32,1,8,8],"data_offsets":[0,%2]},"label":{"dtype":"I64","shape":[%1,32],"data_offsets":[%2,%3]}})")
          .arg(entries)
          .arg(imageBytes)
          .arg(imageBytes + labelBytes)
          .toUtf8();
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly)) return false;
  const quint64 length = static_cast<quint64>(header.size());
  return file.write(reinterpret_cast<const char*>(&length), 8) == 8 && file.write(header) == header.size() &&
         file.write(reinterpret_cast<const char*>(image.data()), imageBytes) == imageBytes &&
         file.write(reinterpret_cast<const char*>(label.data()), labelBytes) == labelBytes;
}

QString textOf(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QStringList cellsOf(const View& view) {
  QStringList cells;
  const auto* table = view.findChild<QTableView*>();
  for (int r = 0; table && r < table->model()->rowCount(); ++r)
    for (int c = 0; c < table->model()->columnCount(); ++c) cells << table->model()->index(r, c).data().toString();
  return cells;
}

std::vector<pid_t> childProcesses() {
  std::vector<pid_t> found;
  for (const QString& entry : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs)) {
    bool number = false;
    const pid_t pid = static_cast<pid_t>(entry.toInt(&number));
    QFile stat(QStringLiteral("/proc/%1/stat").arg(entry));
    if (!number || !stat.open(QIODevice::ReadOnly)) continue;
    const QByteArray text = stat.readAll();
    const QList<QByteArray> fields = text.mid(text.lastIndexOf(')') + 2).split(' ');
    if (fields.size() > 1 && fields[1].toInt() == getpid() && fields[0] != "Z") found.push_back(pid);
  }
  return found;
}

WindowDriver::WindowDriver(QSize size) : window_(std::make_unique<MainWindow>(false)) {
  window_->resize(size);
  window_->show();
  QApplication::setActiveWindow(window_.get());  // as a window manager would; there may be none
  // Making the window and its first picture load fonts and styles; what a user waits for begins after that.
  QElapsedTimer timer;
  timer.start();
  loop_.wait([&timer] { return timer.elapsed() > 150; });
  loop_.forget();
}

SetUpDialog* WindowDriver::open(const QString& model) {
  bool listed = false;  // a dialog comes
  const auto watch = QObject::connect(&window_->session(), &ModelSession::notRead, [&listed] { listed = true; });
  loop_.act([&] { window_->openPath(model); });
  SetUpDialog* dialog = nullptr;
  loop_.wait([&] {
    dialog = nullptr;
    for (auto* found : window_->findChildren<SetUpDialog*>()) {
      if (found->isVisible()) dialog = found;  // others were closed and wait for their end
    }
    return dialog || (window_->notice().isProblem() && !window_->session().busy() && !listed);
  });
  QObject::disconnect(watch);
  if (!dialog) failure_ = window_->notice().text();
  return dialog;
}

bool WindowDriver::build(const TestModel& model, const std::vector<std::pair<QString, QString>>& fields) {
  failure_.clear();
  SetUpDialog* dialog = open(model.model);
  if (!dialog) return false;
  dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->setText(model.data);
  for (const auto& [name, text] : fields) dialog->findChild<QLineEdit*>(QStringLiteral("set_up_") + name)->setText(text);
  auto* button = dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"));
  if (!button->isEnabled()) {
    failure_ = QStringLiteral("the set-up does not build");
    return false;
  }
  loop_.act([button] { button->click(); });
  const bool built = loop_.wait(
      [this] { return (window_->session().built() && !window_->session().busy()) || window_->notice().isProblem(); });
  if (built && window_->notice().isProblem()) failure_ = window_->notice().text();
  return built && failure_.isEmpty() && settled();
}

bool WindowDriver::openBuilt(const TestModel& model, const std::vector<std::pair<std::string, std::string>>& settings) {
  snapshot::Configure configuration;
  const auto set = [&configuration](const std::string& name, const std::string& value) {
    auto* setting = configuration.add_settings();
    setting->set_name(name);
    setting->set_value(value);
  };
  if (!model.data.isEmpty()) set("data", model.data.toStdString());
  for (const auto& [name, value] : settings) set(name, value);
  loop_.act([&] { window_->openAndBuild(model.model, configuration); });
  const bool built = loop_.wait([&] {
    const bool read = window_->session().modelPath() == QFileInfo(model.model).absoluteFilePath();
    return (read && window_->session().built() && !window_->session().busy()) || window_->notice().isProblem();
  });
  failure_ = window_->notice().isProblem() ? window_->notice().text() : QString();
  return built && failure_.isEmpty() && settled();
}

bool WindowDriver::openRecorded(const QString& project) {
  loop_.act([&] { window_->openPath(project); });
  const bool shown = loop_.wait([this] {
    return (window_->store().readOnly() && window_->store().plan() && window_->recording().idle()) ||
           window_->notice().isProblem();
  });
  failure_ = window_->notice().isProblem() ? window_->notice().text() : QString();
  return shown && failure_.isEmpty() && settled();
}

bool WindowDriver::recorded() {
  return settled() && loop_.wait([this] { return window_->recording().idle(); });
}

bool WindowDriver::settled(int ms) {
  // What was asked for may only be posted yet.
  for (int i = 0; i < 3; ++i) {
    int passes = 0;
    loop_.wait([&passes] { return ++passes > 2; });
    if (!loop_.wait(
            [this] {
              return !window_->session().busy() && !window_->session().running() &&
                     window_->session().client().openRequests() == 0 && turns::waiting() == 0;
            },
            ms))
      return false;
  }
  return true;
}

bool WindowDriver::act(const char* action) {
  QAction* found = window_->actions().find(QLatin1String(action));
  if (!found || !found->isEnabled()) {
    failure_ = QStringLiteral("action '%1': %2")
                   .arg(QLatin1String(action), found ? QStringLiteral("disabled") : QStringLiteral("unknown"));
    return false;
  }
  loop_.act([found] { found->trigger(); });
  return settled();
}

bool WindowDriver::select(const Selection& selection) {
  loop_.act([&] { window_->selection().select(selection); });
  return settled();
}

bool WindowDriver::exportTo(const char* action, const QString& path, const QString& written) {
  loop_.act([&] { (*window_).actions()[QLatin1String(action)]->trigger(); });
  QFileDialog* dialog = nullptr;
  if (!loop_.wait(
          [&] {
            return (dialog = window_->findChild<QFileDialog*>(QStringLiteral("save_dialog"))) != nullptr &&
                   dialog->isVisible();
          },
          5'000))
    return false;
  dialog->findChild<QLineEdit*>()->setText(path);
  loop_.act([dialog] { QMetaObject::invokeMethod(dialog, "accept"); });
  const QString file = written.isEmpty() ? path : written;
  return loop_.wait([&] { return QFileInfo(file).size() > 0 && window_->recording().idle(); });
}

QStringList WindowDriver::shownCells() {
  const auto* table =
      window_->board().find(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
  QStringList cells;
  for (int r = 0; r < std::min(table->model()->rowCount(), 40); ++r) {
    for (int c = 0; c < std::min(table->model()->columnCount(), 20); ++c)
      cells << table->model()->index(r, c).data().toString();
  }
  return cells;
}

TensorPtr WindowDriver::shownTensor() { return window_->store().tensor(window_->selection().selection().value); }

void WindowDriver::picture(const QString& name) {
  const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES");
  if (folder.isEmpty()) return;
  QElapsedTimer timer;
  timer.start();
  loop_.wait([&timer] { return timer.elapsed() > 500; });
  window_->grab().save(folder + '/' + name + QStringLiteral(".png"));
  loop_.forget();
}

View* WindowDriver::view(const QString& id) {
  View* shown = nullptr;
  loop_.act([&] { shown = window_->board().show(id); });
  settled();
  return shown;
}

}  // namespace stepscope
