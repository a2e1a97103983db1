// SPDX-License-Identifier: GPL-3.0-or-later
// Files: opening models and projects, set-up, recording, reports, pictures; and the boxes that open over the window.
#include <QCoreApplication>
#include <QCryptographicHash>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QSettings>
#include <QStandardPaths>
#include <QTimer>

#include "app/workbench/capture_settings.h"
#include "app/workbench/exports.h"
#include "app/workbench/main_window.h"
#include "app/workbench/places.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/key_help/key_help.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/palette/palette.h"

namespace stepscope {
namespace {

constexpr qsizetype kMostRecent = 24;  // models and what was recorded of them

QString setUpKey(const QString& model) {
  return QStringLiteral("set_up/") +
         QString::fromLatin1(QCryptographicHash::hash(model.toUtf8(), QCryptographicHash::Sha1).toHex());
}

QString settingOf(const snapshot::Configure& configuration, const char* name) {
  QString found;
  for (const auto& s : configuration.settings()) {
    if (s.name() == name) found = QString::fromStdString(s.value());
  }
  return found;
}

}  // namespace

void MainWindow::openPath(const QString& path) {
  const Place place = placeToOpen(path);
  if (!place.problem.isEmpty()) return notice_->showProblem(place.problem, {}, {});  // what is open stays
  notice_->clear();
  closeSetUp();
  scripted_ = false;
  back_.reset();
  if (place.path.endsWith(QStringLiteral(".stepscope"), Qt::CaseInsensitive)) {
    recording_.open(place.path, 0);
    return;
  }
  // A model that is open stays until this one is built or looked at.
  if (session_.built() && session_.client().alive() && store_.workerState() != WorkerState::kUnresponsive)
    peek_.read(place.path);
  else
    session_.inspect(place.path, {});
}

void MainWindow::connectPeek() {
  connect(&peek_, &ModelPeek::modelRead, this,
          [this](const QString& path, const ModelPtr& model) { showSetUpOf(model, lastSetUp(path), path); });
  connect(&peek_, &ModelPeek::refused, this, [this](const QString& path, const QString& why, const ModelPtr& model) {
    const QString text = format::visible(why.section('\n', 0, 0));
    const int all = model ? model->problems_size() : 1;
    const QString said = all > 1 ? tr("%1 problems, the first: %2").arg(format::count(all), text) : text;
    notice_->showProblem(why.contains(path) ? said : tr("model '%1': %2").arg(format::visible(path), said), {}, {});
    if (model && model->problems_size() > 0) showSetUpOf(model, {}, path);
  });
  connect(&session_, &Session::buildRefused, this,
          [this](const snapshot::Configure& refused, const QString& text, const QString& setting) {
            if (scripted_ || !store_.model()) return;
            showSetUpOf(store_.model(), refused, session_.modelPath())->showProblem(text, setting);
          });
  // A model is looked at: its graph is there before anything is built.
  connect(&store_, &SnapshotStore::graphChanged, this, [this] {
    if (store_.graph() && !session_.built() && !store_.readOnly()) showStartPage(false);
  });
}

void MainWindow::openAndBuild(const QString& path, const snapshot::Configure& configuration) {
  notice_->clear();
  scripted_ = true;
  back_.reset();
  session_.openAndBuild(QFileInfo(path).absoluteFilePath(), configuration);
}

void MainWindow::showSetUp() {
  if (store_.model())
    showSetUpOf(store_.model(),
                session_.configuration().settings_size() > 0 ? session_.configuration() : lastSetUp(session_.modelPath()),
                session_.modelPath());
}

void MainWindow::closeSetUp() {
  ++setUps_;
  peek_.cancel();
  for (auto* dialog : findChildren<SetUpDialog*>()) dialog->close();
}

SetUpDialog* MainWindow::showSetUpOf(const ModelPtr& model, const snapshot::Configure& before, const QString& path) {
  closeSetUp();
  auto* dialog = new SetUpDialog(model, before, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  // The model that is open, or another one.
  const bool other = model != store_.model();
  if (other && model->problems_size() == 0 && session_.built()) dialog->offerLook();
  connect(dialog, &SetUpDialog::buildWanted, this, [this, other, path](const snapshot::Configure& configuration) {
    notice_->clear();
    scripted_ = false;
    if (other)
      session_.openAndBuild(path, configuration);
    else
      session_.build(configuration);
  });
  connect(dialog, &SetUpDialog::lookWanted, this, [this, path] { session_.inspect(path, {}); });
  connect(dialog, &SetUpDialog::openWithRandomWeights, this, [this, path] {
    notice_->clear();
    session_.inspect(path, QStringLiteral("random"));
  });
  dialog->setWindowFlags(Qt::Widget);
  dialog->setFixedWidth(std::min(width() * 11 / 20, 58 * Metrics::current().unit));
  middle_->addWidget(dialog);
  pages_->setMinimumWidth(1);  // the views give way; without the set-up they have their own least width again
  connect(dialog, &QObject::destroyed, pages_, [this] {
    if (findChildren<SetUpDialog*>().isEmpty()) pages_->setMinimumWidth(0);
  });
  dialog->show();
  dialog->setFocus();
  return dialog;
}

void MainWindow::noteFile(const QString& path) {
  if (!remember_) return;
  QSettings settings;
  QStringList recent = remembered().texts(QStringLiteral("recent"));
  recent.removeAll(path);
  recent.prepend(path);
  for (const QString& old : recent.mid(kMostRecent)) settings.remove(setUpKey(old));
  settings.setValue(QStringLiteral("recent"), recent.mid(0, kMostRecent));
  listFiles();
}

void MainWindow::noteSetUp() {
  if (!remember_) return;
  const std::string text = session_.configuration().SerializeAsString();
  QSettings().setValue(setUpKey(session_.modelPath()), QByteArray(text.data(), static_cast<qsizetype>(text.size())));
}

snapshot::Configure MainWindow::lastSetUp(const QString& path) {
  snapshot::Configure last = captureSettings(path);
  if (!remember_) return last;
  const SettingsReader settings = remembered();
  const QByteArray text = settings.bytes(setUpKey(path));
  if (text.isEmpty() || last.ParseFromArray(text.constData(), static_cast<int>(text.size()))) return last;
  settings.refuse(setUpKey(path), tr("%1 bytes").arg(text.size()), tr("the set-up of a model"));
  return {};
}

void MainWindow::listFiles() {
  std::vector<FileEntry> files;
  if (remember_) {
    for (const QString& path : remembered().texts(QStringLiteral("recent")).mid(0, kMostRecent)) {
      if (QFileInfo::exists(path)) files.push_back({path, {}, false});
    }
  }
  // Beside the program when it runs from a build, in the data folder when it is installed.
  const QDir here(QCoreApplication::applicationDirPath());
  for (const QString& place : {QStringLiteral("../../../app/samples"), QStringLiteral("../../app/samples"),
                               QStringLiteral("../share/stepscope/samples")}) {
    const QDir folder(here.filePath(place));
    for (const QFileInfo& sample : folder.entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
      const QStringList models = QDir(sample.filePath()).entryList({QStringLiteral("*.onnx")}, QDir::Files, QDir::Name);
      if (!models.isEmpty()) files.push_back({QDir::cleanPath(sample.filePath() + '/' + models.first()), {}, true});
    }
  }
  store_.project().setFiles(std::move(files));
}

void MainWindow::beginRecording() {
  const QString model = session_.modelPath();
  QString path = projectPath_;
  if (path.isEmpty()) {
    const QString folder =
        remember_ ? QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/projects")
                  : scratch_.path();
    const QString hash =
        QString::fromLatin1(QCryptographicHash::hash(model.toUtf8(), QCryptographicHash::Sha1).toHex().left(8));
    const QFileInfo file(model);
    path = folder + '/' + (file.completeBaseName() == u"model" ? file.dir().dirName() : file.completeBaseName()) + '-' +
           hash + QStringLiteral(".stepscope");
  }
  const auto& configuration = session_.configuration();
  storage::RunInfo info;
  info.modelPath = model.toStdString();
  info.device = "cpu";
  info.threads = settingOf(configuration, "threads").toInt();
  if (info.threads == 0 && store_.machine()) info.threads = store_.machine()->cores();
  info.seed = settingOf(configuration, "seed").toLongLong();
  info.optimizer =
      settingOf(configuration, "optimizer").isEmpty() ? "sgd" : settingOf(configuration, "optimizer").toStdString();
  if (const GraphPtr& graph = store_.graph()) {
    if (const auto* loss = graph->value(graph->graph().loss())) info.lossName = loss->name();
  }
  if (store_.model()) info.model = *store_.model();
  if (store_.machine()) info.machine = *store_.machine();
  info.options = store_.options();
  recording_.begin(path, std::move(info));
  noteFile(path);
}

void MainWindow::askFile(const QString& title, const QString& name, const QString& filter,
                         const std::function<void(const QString&)>& then) {
  // One dialog for the life of the window: its end waits for the thread that reads folders.
  if (!saveDialog_) {
    saveDialog_ = new QFileDialog(this);
    saveDialog_->setObjectName(QStringLiteral("save_dialog"));
    saveDialog_->setFileMode(QFileDialog::AnyFile);
    saveDialog_->setAcceptMode(QFileDialog::AcceptSave);
    connect(saveDialog_, &QFileDialog::fileSelected, this, [this](const QString& path) {
      if (const auto saved = std::exchange(save_, {})) saved(path);
    });
  }
  save_ = then;
  saveDialog_->setWindowTitle(title);
  saveDialog_->setNameFilter(filter);
  saveDialog_->setDefaultSuffix(QFileInfo(name).completeSuffix());  // also of report.trace.json: .json is another report
  saveDialog_->selectFile(name);
  saveDialog_->open();
}

void MainWindow::askExisting(const QString& title, const QString& filter, const std::function<void(const QString&)>& then) {
  if (!existingDialog_) {
    existingDialog_ = new QFileDialog(this);
    existingDialog_->setObjectName(QStringLiteral("existing_dialog"));
    existingDialog_->setFileMode(QFileDialog::ExistingFile);
    existingDialog_->setAcceptMode(QFileDialog::AcceptOpen);
    connect(existingDialog_, &QFileDialog::fileSelected, this, [this](const QString& path) {
      if (const auto chosen = std::exchange(existing_, {})) chosen(path);
    });
  }
  existing_ = then;
  existingDialog_->setWindowTitle(title);
  existingDialog_->setNameFilter(filter);
  existingDialog_->open();
}

void MainWindow::connectArrays() {
  const QString filter = tr("NumPy array (*.npy)");
  connect(&wishes_, &Wishes::saveTensor, this, [this, filter](int value) {
    askFile(tr("Save tensor"), QStringLiteral("tensor.npy"), filter,
            [this, value](const QString& path) { session_.saveTensor(value, path); });
  });
  connect(&wishes_, &Wishes::loadTensor, this, [this, filter](int value, const QString& path) {
    const auto load = [this, value](const QString& file) { session_.loadTensor(value, file); };
    if (!path.isEmpty()) return load(path);
    askExisting(tr("Load contents"), filter, load);
  });
  connect(&wishes_, &Wishes::compareWithFile, this, [this, filter](int value, const QString& path) {
    const auto compare = [this, value](const QString& file) { session_.compareWithFile(value, file); };
    if (!path.isEmpty()) return compare(path);
    askExisting(tr("Compare with an array"), filter, compare);
  });
  connect(&wishes_, &Wishes::compareWithValue, &session_, &Session::compareWithValue);
  connect(&wishes_, &Wishes::keepTensor, &session_, &Session::keepTensor);
  connect(&wishes_, &Wishes::rowLosses, &session_, &Session::rowLosses);
  connect(&wishes_, &Wishes::readSource, &sources_, &SourceReader::read);
}

void MainWindow::connectFiles() {
  const auto on = [this](const char* id, auto&& slot) {
    connect((*actions_)[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("configure", [this] { showSetUp(); });
  connectPeek();
  on("save_state", [this] {
    askFile(tr("Save parameters"), QStringLiteral("state.safetensors"), tr("Safetensors (*.safetensors)"),
            [this](const QString& path) { session_.saveState(path); });
  });
  for (const auto& [id, name] : {std::pair("report_html", "report.html"), std::pair("report_pdf", "report.pdf"),
                                 std::pair("report_json", "report.json"), std::pair("report_csv", "report.csv"),
                                 std::pair("report_trace", "report.trace.json")}) {
    on(id, [this, name = QString::fromLatin1(name)] {
      askFile(tr("Report"), name, tr("Report (*.%1)").arg(name.section('.', 1)),
              [this](const QString& path) { recording_.report(path); });
    });
  }
  on("picture_save", [this] {
    View* view = board_->activeView();
    if (!view) return;
    askFile(tr("Picture of %1").arg(view->title()), view->objectName() + QStringLiteral(".png"),
            tr("Pictures (*.png *.svg *.pdf)"), [this, view = QPointer<View>(view)](const QString& path) {
              if (!view) return;
              const QString why = writePicture(*view, path);
              if (why.isEmpty()) {
                status_->note(tr("Saved %1").arg(format::visible(path)));
              } else {
                notice_->showProblem(why, {}, {});
              }
            });
  });
  on("picture_copy", [this] {
    if (View* view = board_->activeView()) {
      copyPicture(*view);
      status_->note(tr("The picture of %1 is in the clipboard").arg(view->title()));
    }
  });
  on("keys", [this] {
    for (auto* open : findChildren<KeyHelp*>()) {
      if (open->isVisible()) return open->raise();
    }
    (new KeyHelp(actions_->all(), this))->show();
  });
  palette_ = new Palette({store_, selection_, wishes_}, actions_->all(), this);
  on("palette", [this] { palette_->open(QStringLiteral(">")); });
  on("goto", [this] { palette_->open({}); });

  connectArrays();
  connect(&wishes_, &Wishes::openDialog, this, [this] {
    const QString last = remember_ ? remembered().texts(QStringLiteral("recent")).value(0) : QString();
    auto* dialog = new QFileDialog(this, tr("Open a model or a project"), QFileInfo(last).path(),
                                   tr("Models and projects (*.onnx *.stepscope);;All files (*)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openPath);
    dialog->open();
  });
  connect(&wishes_, &Wishes::sql, this, [this](const QString& query) {
    board_->show(QStringLiteral("sql"));
    store_.project().setSqlText(query);
    recording_.runSql(query);
  });
  connect(&wishes_, &Wishes::runSql, &recording_, &Recording::runSql);
  connect(&wishes_, &Wishes::cancelSql, &recording_, &Recording::cancelSql);
  connect(&wishes_, &Wishes::exportTable, this, [this](const QString& name, const QString& csv) {
    askFile(tr("Export table"), name, tr("Comma separated (*.csv)"), [this, csv](const QString& path) {
      QFile file(path);
      if (!file.open(QIODevice::WriteOnly) || file.write(csv.toUtf8()) < 0)
        notice_->showProblem(tr("table '%1': %2").arg(format::visible(path), file.errorString()), {}, {});
    });
  });
  connect(&wishes_, &Wishes::compareRuns, &recording_, &Recording::compare);
  connect(&wishes_, &Wishes::openOtherProject, this, [this] {
    auto* dialog = new QFileDialog(this, tr("Compare with a run of another project"), {}, tr("Projects (*.stepscope)"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, &recording_, &Recording::listOtherRuns);
    dialog->open();
  });
  connect(&wishes_, &Wishes::openRun, this, [this](qint64 run) {
    if (store_.readOnly()) {
      recording_.open(store_.project().projectPath(), run);
    } else {
      status_->note(tr("Open the project file to look at an earlier run"));
    }
  });

  connect(&session_, &Session::modelInspected, this, [this] {
    // Not in the turn that took the answer: the dialog is work enough for one.
    if (!scripted_)
      QTimer::singleShot(0, this, [this, asked = setUps_] {
        if (asked == setUps_ && !session_.built()) showSetUp();
      });
  });
  connect(&session_, &Session::notRead, this, [this](const ModelPtr& model) {
    if (scripted_) return;
    QTimer::singleShot(0, this, [this, model, asked = setUps_] {
      if (asked == setUps_) showSetUpOf(model, {}, QString::fromStdString(model->path()));
    });
  });
  connect(&session_, &Session::builtChanged, this, [this] {
    if (!session_.built()) {
      recording_.end(storage::RunStatus::kFinished);
      return;
    }
    // What a new worker goes on with is the run of the one that died.
    if (!session_.comingBack() || !recording_.recording()) {
      beginRecording();
      noteFile(session_.modelPath());
      noteSetUp();
      remember();  // also for a window that does not live to be closed
    }
    recording_.phases();
    recording_.build();
    keeper_.begin();
  });
  connect(&session_, &Session::phasesTold, &recording_, &Recording::phases);
  connect(&session_, &Session::planRebuilt, this, [this] {
    recording_.build();
    keeper_.begin();
  });
  connect(&session_, &Session::planResumed, &recording_, &Recording::planResumed);
  connect(&session_, &Session::planShown, &keeper_, &BuildKeeper::beginAgain);
  connect(&keeper_, &BuildKeeper::verdictsRead, &recording_, &Recording::determinism);
  connect(&keeper_, &BuildKeeper::stageRead, &recording_, &Recording::stage);
  auto* runs = new QTimer(this);
  runs->setSingleShot(true);
  runs->setInterval(400);
  connect(runs, &QTimer::timeout, &recording_, &Recording::refreshRuns);
  connect(&session_, &Session::busyChanged, this, [this, runs] {
    // The list of runs follows when the work pauses, not with every step.
    if (session_.built() && !session_.busy() && !session_.running()) runs->start();
  });
  connect(&session_, &Session::stepRecorded, &recording_, &Recording::step);
  connect(&session_, &Session::watchedRead, &recording_, &Recording::statistics);
  connect(&session_, &Session::alertRaised, &recording_, &Recording::alert);
  connect(&recording_, &Recording::stateChanged, status_, &StatusLine::setRecorder);
  connect(&recording_, &Recording::failed, this, [this](const QString& text) { notice_->showProblem(text, {}, {}); });
  connect(&recording_, &Recording::reported, this,
          [this](const QString& path) { status_->note(tr("Saved %1").arg(format::visible(path))); });
  connect(&recording_, &Recording::opening, this, [this] {
    if (!store_.readOnly()) session_.close();
  });
  connect(&recording_, &Recording::elsewhere, this, [this](const QString& path, const QString& why) {
    noteFile(path);
    notice_->showProblem(why, {}, {});
  });
  connect(&recording_, &Recording::besideAnother, this, [this](const QString& path) {
    noteFile(path);
    status_->note(
        tr("Another window records this model; this run goes into %1").arg(format::visible(path.section('/', -1))));
  });
  connect(&recording_, &Recording::opened, this, [this](const QString& path) {
    noteFile(path);
    setWindowTitle(tr("%1 (read-only) – Stepscope").arg(format::visible(path.section('/', -1))));
    showStartPage(false);
  });
  connect(&recording_, &Recording::damaged, this, [this](const QStringList& warnings) {
    const int more = static_cast<int>(warnings.size()) - 1;
    const QString text =
        more > 0 ? tr("%1. What can be read is shown; %2 more in Alerts").arg(warnings.value(0), format::count(more))
                 : tr("%1. What can be read is shown").arg(warnings.value(0));
    notice_->showProblem(text, tr("Show alerts"), [this] { board_->show(QStringLiteral("alerts")); });
  });
  connectReturn();
  listFiles();
  // The start page tells what the machine has, which the worker knows.
  session_.client().start();
}

}  // namespace stepscope
