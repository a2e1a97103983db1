// SPDX-License-Identifier: GPL-3.0-or-later
// What a view may ask for. A view emits one of these signals; the workbench does it and the result comes back through the
// SnapshotStore. Views never call anything else.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "views/common/run_comparison.h"

namespace stepscope {

class Wishes : public QObject {
  Q_OBJECT

 public:
  explicit Wishes(QObject* parent = nullptr) : QObject(parent) {}

 signals:
  // Files
  void openDialog();
  void openPath(const QString& path);                                // model or project
  void inspect(const QString& path, const QString& missingWeights);  // opens in the worker without building
  void build(const stepscope::snapshot::Configure& configuration);
  // Stepping
  void runTo(int instruction);
  void toggleBreakpoint(int instruction);  // of the plan
  void addBreakpoint(const stepscope::snapshot::Breakpoint& breakpoint);
  void removeBreakpoint(int id);
  void enableBreakpoint(int id, bool enabled);
  void rewind(qint64 step);
  // Back to this step, and in it behind the instruction; -1: to its start.
  void goToPlace(qint64 step, int instruction);
  // Data
  void stageGraph(const QString& stage);  // graph of another build phase
  void showStep(qint64 step);             // in full, in place of the newest ones (ChosenStep); -1: those again
  // The graph of a stop (PassStages), compared with that of `base` unless that is empty, and a node of it; -1: no node.
  void showStop(const QString& stop, const QString& base, int node);
  void fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent);
  void watch(int value, bool on);
  void pin(int value, bool on);
  void editTensor(int value, const std::vector<qint64>& index, double number, bool fill);
  // As an edit that can be taken back to `before`; how it ended stands in the findings.
  void editElement(int value, const std::vector<qint64>& index, double number, double before);
  void saveTensor(int value);                            // asks for the file
  void loadTensor(int value, const QString& path);       // a .npy file becomes its contents; an empty path asks for it
  void compareWithFile(int value, const QString& path);  // a .npy file; an empty path asks for it
  void compareWithValue(int value, int other);
  void keepTensor(int value);  // for later comparisons
  void rowLosses();
  // What may be computed again. With `whatIf` also what this plan or, above 0, this budget would give.
  void recompute(bool whatIf, const QString& plan, qint64 budget);
  void studyPrecision(const QString& precision);  // the present step in it, next to float32
  // The present step next to the same step with every option changed.
  void tryOptions(const stepscope::snapshot::GetTrials& question);
  void measureLedger();                                                 // what the present step is spent on
  void planCapacity(const stepscope::snapshot::GetCapacity& question);  // what fits where, without running
  void bisect();                         // which options and nodes make the present step compute other numbers
  void compareWithCapture();             // the captured model with what PyTorch computed of it
  void compareCaptures(bool always);     // as soon as they are built
  void deleteRun(qint64 run);            // of the project
  void nameRun(qint64 run);              // likewise; asks for the name
  void readSource(const QString& path);  // of this machine, chosen by the user
  void determinism();
  void compareBits();
  // Settings and tools
  void setOption(const QString& name, const QString& value);
  void command(const QString& actionId);  // an action of the workbench by its object name
  void sql(const QString& query);         // opens the SQL view with it, without running it
  void runSql(const QString& query);
  void cancelSql();
  void exportTable(const QString& name, const QString& csv);  // asks for the file
  void openRun(qint64 run);                                   // of the open project, read-only
  void compareRuns(const stepscope::CompareRequest& request);
  void openOtherProject();           // asks for a project whose runs may be compared with
  void status(const QString& text);  // short note in the status bar
};

}  // namespace stepscope
