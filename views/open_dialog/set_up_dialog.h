// SPDX-License-Identifier: GPL-3.0-or-later
// How an opened model is trained: data, loss, trained parameters, optimizer, device. Everything is proposed from what
// inspection found, with the reason; anything can be changed, and data that lies next to the model left out for synthetic
// ones. Problems of the file are listed with their places.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabWidget>

#include "views/common/row_table.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

class MoreSettings;

class SetUpDialog : public QDialog {
  Q_OBJECT

 public:
  // `before`: the settings of the last build of this model, empty the first time.
  SetUpDialog(ModelPtr model, const snapshot::Configure& before, QWidget* parent = nullptr);

  const ModelPtr& model() const { return model_; }
  // The settings as they stand, in the names of the command line.
  snapshot::Configure configuration() const;
  // Why it did not build, beside the field of that setting, or below all of them.
  void showProblem(const QString& text, const QString& setting);
  // The plan needs more than the memory.limit of these settings: it may be built so that it fits. Nothing without a limit.
  void offerToFit();
  // The worker is on another machine: a file of this one is sent before it can be used.
  void setHost(const QString& host);
  void setData(const QString& path) { data_->setText(path); }  // where it lies for the worker
  // What PyTorch's meaning lost when the model was captured.
  void tellNotes(const QStringList& notes);
  // The model can be looked at without a build, in place of the one that is open.
  void offerLook();
  // The model is built already and stands at this step: the next build goes on from it, or begins again. Told again when
  // the step is another one.
  void offerToGoOn(std::int64_t step);
  bool beginsAgain() const { return begin_ && begin_->currentIndex() == 1; }
  // What can be set besides: a page of fields made of the options' metadata. Once.
  void offerMore(const std::vector<snapshot::Option>& options);

 signals:
  void sendWanted(const QString& path);  // of this machine, to the worker's; setData() follows
  void lookWanted();
  void buildWanted(const stepscope::snapshot::Configure& configuration);
  // To be built with as much recompute as makes it fit into `limit`, which the settings do not hold.
  void fitWanted(const stepscope::snapshot::Configure& configuration, const QString& limit);
  // The file misses its weights and the user wants them filled from the seed.
  void openWithRandomWeights();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  // The index of a page that is filled when it is first shown.
  int addPage(QTabWidget* tabs, const QString& title, QWidget* (*make)(const snapshot::ModelInfo& model));
  QWidget* trainingPage(const snapshot::Configure& before);
  void addDevice(const QString& device);  // in the words of the option; one that is listed stays as it is
  void chooseData();
  void update();
  void proposeFunction();
  void proposeLabels();
  QWidget* fieldOf(const QString& setting) const;
  static QString value(const snapshot::Configure& configuration, const char* name);

  ModelPtr model_;
  std::vector<std::pair<std::string, std::string>> kept_;  // settings without a field here; they stay as they are
  QLineEdit* data_;
  QComboBox* loss_;
  QComboBox* lossFunction_;
  QComboBox* labels_;  // the input with the targets of an attached loss; may be typed
  QWidget* labelsLine_;
  QComboBox* optimizer_;
  QLineEdit *rate_, *decay_, *momentum_, *clip_, *accumulate_;
  QLineEdit *train_, *freeze_, *seed_, *threads_, *dims_;
  QComboBox* device_;
  QLabel *lossReason_, *dataReason_, *dimsReason_, *trained_, *problem_;
  QPushButton* proposed_;  // takes the proposed data back
  QPushButton* browse_ = nullptr;
  QString host_;  // empty: this machine
  QPushButton* build_ = nullptr;
  QDialogButtonBox* buttons_ = nullptr;
  QComboBox* begin_ = nullptr;  // where it may begin at more places than one
  QLabel* begins_ = nullptr;    // with which file it begins
  QString startState_;          // that file, of the last build
  QTabWidget* tabs_ = nullptr;
  MoreSettings* more_ = nullptr;
  QLabel* refusal_ = nullptr;  // beside a field
  QString refused_;            // what is told below all fields
  QString asked_;              // the setting at fault while no field shows it
  bool chosenFunction_ = false;
  bool chosenLabels_ = false;
};

}  // namespace stepscope
