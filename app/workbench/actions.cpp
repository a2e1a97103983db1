// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/actions.h"

#include <QWidget>

#include "views/common/icons.h"

namespace stepscope {

const std::vector<ActionEntry>& Actions::table() {
  static const std::vector<ActionEntry> kTable = {
      {"open", "File", "Open…", "Ctrl+O", "open", "Open a model or a project"},
      {"connect", "File", "Connect…", "", "", "Work with the worker of another machine, through ssh"},
      {"send_model", "File", "Send a model to that machine…", "", "",
       "Copy a model of this machine, with its data, to the one that is connected, and open it there"},
      {"detach", "File", "Detach from the script", "", "",
       "Leave the running script, which goes on, and work with a worker again"},
      {"start_page", "File", "Start page", "", "", "Recent projects, samples and what this machine has"},
      {"configure", "File", "Change set-up…", "Ctrl+Shift+O", "",
       "Change data, loss, optimizer or device of the open model and build again"},
      {"save_state", "File", "Save parameters…", "Ctrl+S", "save", "Write parameters and optimizer state as .safetensors"},
      {"report_html", "File", "Report as HTML…", "", "export", "One page with phases, steps, memory and alerts of this run"},
      {"report_pdf", "File", "Report as PDF…", "", "", "The same on A4, its charts as vectors"},
      {"report_json", "File", "Report as JSON…", "", "", "Everything recorded of this run, machine-readable"},
      {"report_csv", "File", "Report as CSV…", "", "",
       "One line per step; a name that ends in .ops.csv, .instructions.csv, .roofline.csv or .phases.csv takes those"},
      {"report_trace", "File", "Trace for Perfetto…", "", "", "Chrome trace events of the recorded steps"},
      {"import_pytorch", "File", "PyTorch's trace beside this run…", "", "",
       "Times of torch.profiler, joined operator by operator: theirs, ours and the ratio in the view Time per op"},
      {"load_streams", "File", "Streams from a file…", "", "",
       "Nodes run on the streams of a GPU that a file names (option streams.partition)"},
      {"picture_save", "File", "Save picture of view…", "Ctrl+E", "save", "The active view as PNG, SVG or PDF"},
      {"picture_copy", "File", "Copy picture of view", "Ctrl+Shift+C", "copy",
       "The active view as a picture in the clipboard"},
      {"quit", "File", "Quit", "Ctrl+Q", "", "Close the window; the project keeps everything"},

      {"run", "Run", "Run", "F5", "run", "Run until a breakpoint stops it, step after step; while it runs, pause"},
      {"run_back", "Run", "Run back", "Shift+F5", "runback",
       "Run backwards to the previous breakpoint or the start of the step"},
      {"stop", "Run", "Pause", "Ctrl+Pause", "stop", "Stop what is running; the step stays where it is"},
      {"cancel_reads", "Run", "Cancel reading the project", "", "",
       "Comparison, list of runs, report: what is read of the project file now ends, and what was there before stays"},
      {"step_back", "Run", "Step back", "Shift+F10", "back", "Undo one instruction"},
      {"step", "Run", "Step", "F10", "step", "Run one instruction"},
      {"step_phase", "Run", "Phase", "F7", "phase", "Run to the start of the next phase (forward, backward, optimizer)"},
      {"step_phase_back", "Run", "Phase back", "Shift+F7", "phaseback",
       "Go back to the start of this phase or the one before"},
      {"step_whole", "Run", "Training step", "F8", "whole",
       "Finish this training step, optimizer update included; breakpoints hold a run (F5), not this"},
      {"run_here", "Run", "Run to selection", "Ctrl+F10", "to", "Run forwards or backwards to the selected instruction"},
      {"abandon", "Run", "Throw step away", "", "", "Go back to the state before this step"},
      {"train", "Run", "Train at full speed…", "Ctrl+F5", "", "Run many training steps without stopping at instructions"},
      {"rewind", "Run", "Rewind to step…", "", "", "Go back to the state before an earlier step"},
      {"continue_run", "Run", "Continue the training", "", "",
       "Go on where the window was closed, from the state that was kept; recorded as a run of its own"},
      {"new_run", "Run", "New run from step 0", "", "",
       "Begin again as a run of its own: the same options, data and seed, and the parameters of the file"},
      {"name_run", "Run", "Name this run…", "", "", "The name it has in the list of runs and in reports"},
      {"breakpoint", "Run", "Breakpoint", "F9", "break", "Set or clear a breakpoint on the selected instruction"},
      {"breakpoint_add", "Run", "Add breakpoint…", "Shift+F9", "",
       "Break on an operator, a phase or a condition on a tensor"},
      {"restart", "Run", "Restart worker", "Ctrl+Shift+F5", "refresh", "Start the worker again and return to the same step"},

      {"back", "Select", "Back", "Alt+Left", "left", "The selection before"},
      {"forward", "Select", "Forward", "Alt+Right", "right", "The selection after"},
      {"goto", "Select", "Go to node, tensor or line…", "Ctrl+P", "search",
       "Find a node, tensor, instruction, parameter or source line by name"},
      {"goto_number", "Select", "Go to instruction…", "Ctrl+G", "", "Select an instruction by its number"},
      {"find", "Select", "Find in view", "Ctrl+F", "", "Filter or search the active view"},
      {"next_alert", "Select", "Next alert", "F6", "warning", "Select the next NaN, infinity or other alert"},
      {"next_instruction", "Select", "Next instruction", "Ctrl+Right", "", "Select the instruction after the selected one"},
      {"previous_instruction", "Select", "Previous instruction", "Ctrl+Left", "",
       "Select the instruction before the selected one"},
      {"select_current", "Select", "Current instruction", "Ctrl+Home", "", "Select the instruction that runs next"},
      {"select_forward", "Select", "Forward node of selection", "Ctrl+Up", "",
       "From a gradient node to the forward node it came from"},
      {"select_gradient", "Select", "Gradient of selection", "Ctrl+Down", "",
       "From a forward node to the first node of its gradients; again: to the next one, and round"},

      {"focus", "View", "Focus selection", "F", "", "Bring the selection into the middle; twice fits all"},
      {"fit", "View", "Fit all", "Space", "", "Show everything in the active view"},
      {"enter_group", "View", "Into group", "F11", "", "Open the selected group"},
      {"leave_group", "View", "Out of group", "Shift+F11", "", "Close the group around the selection"},
      {"tear_out", "View", "View into a window of its own", "", "",
       "Take the active view out of the window, for a second screen; closed, it comes back"},
      {"theme", "View", "Light or dark", "", "", "Switch between the light and the dark theme"},
      {"layout_save", "View", "Save layout as…", "", "", "Keep this arrangement under a name"},
      {"layout_reset", "View", "Reset layout", "", "layout", "The layout as it was saved or shipped"},
      {"layout_delete", "View", "Delete layout", "", "",
       "Forget the saved layout; a shipped one comes back as it was shipped"},
      {"undo", "View", "Undo", "Ctrl+Z", "", "Take back the last change of an option, of an element or of the view"},
      {"redo", "View", "Redo", "Ctrl+Shift+Z", "", "Do again what was taken back"},
      {"zoom_in", "View", "Larger text", "Ctrl++; Ctrl+=", "", "Scale the window's text up"},
      {"zoom_out", "View", "Smaller text", "Ctrl+-", "", "Scale the window's text down"},
      {"zoom_reset", "View", "Normal text", "Ctrl+0", "", "Text in the system's size"},

      {"palette", "Tools", "Command palette…", "Ctrl+Shift+P; Ctrl+K", "", "Every command by name; : runs SQL"},
      {"options", "Tools", "Options", "", "options", "Every option, what it changed, and its switch"},
      {"compare_bits", "Tools", "Run twice, compare bits", "", "", "Run the present step twice and compare every value"},
      {"compare_runs", "Tools", "Compare two runs", "", "",
       "Options, times, memory and losses of two runs of the project, and where they part"},
      {"compare_settings", "Tools", "Compare: settings", "", "", "Options and settings in which the two runs differ"},
      {"compare_numbers", "Tools", "Compare: first divergence", "", "",
       "The numbers of two runs that part by more than the tolerance, in the order they are computed"},
      {"compare_operators", "Tools", "Compare: times per operator", "", "", "Time per step of each operator in both runs"},
      {"compare_phases", "Tools", "Compare: phases of the step", "", "",
       "Forward, backward, recompute and optimizer of both runs"},
      {"compare_build", "Tools", "Compare: build", "", "", "How long each phase of the newest build took in both runs"},
      {"compare_memory", "Tools", "Compare: memory", "", "", "Planned and measured bytes of both runs"},
      {"compare_other", "Tools", "Compare with another project…", "", "", "Takes run B from another project file"},
      {"determinism", "Tools", "Check determinism", "", "", "The verdict on every node, with the reason"},
      {"alerts_clear", "Tools", "Clear alerts", "", "", "Empty the list of alerts; the project keeps them"},
      {"guide", "Help", "Guide", "", "info", "Journeys, views and what the numbers mean, with search; needs no network"},
      {"guide_here", "Help", "Guide: this view", "F1", "", "The page of the guide about the view with the keyboard"},
      {"keys", "Help", "Keys", "?", "", "All keys"},
  };
  return kTable;
}

Actions::Actions(QWidget* window) : QObject(window), window_(window) {
  for (const ActionEntry& entry : table()) {
    QAction* action = add(QLatin1String(entry.id), QLatin1String(entry.group), QString::fromUtf8(entry.text),
                          QString::fromUtf8(entry.tip));
    QList<QKeySequence> keys;
    for (const QString& key : QString::fromLatin1(entry.shortcut).split(QStringLiteral("; "), Qt::SkipEmptyParts)) {
      keys << QKeySequence(key, QKeySequence::PortableText);
    }
    action->setShortcuts(keys);
    if (!keys.isEmpty()) {
      action->setToolTip(
          QStringLiteral("%1  (%2)").arg(action->statusTip(), keys.first().toString(QKeySequence::NativeText)));
    }
    if (*entry.icon) action->setIcon(icon(QLatin1String(entry.icon)));
  }
}

QAction* Actions::add(const QString& id, const QString& group, const QString& text, const QString& tip) {
  auto* action = new QAction(text, this);
  action->setObjectName(id);
  action->setProperty("group", group);
  action->setStatusTip(tip);
  action->setToolTip(tip);
  action->setShortcutContext(Qt::WindowShortcut);
  window_->addAction(action);
  all_ << action;
  return action;
}

QAction* Actions::find(const QString& id) const {
  for (QAction* action : all_) {
    if (action->objectName() == id) return action;
  }
  return nullptr;
}

QAction* Actions::operator[](const QString& id) const {
  QAction* action = find(id);
  if (!action) qFatal("action '%s': not in the table", qPrintable(id));
  return action;
}

QString Actions::groupOf(const QAction* action) { return action->property("group").toString(); }

}  // namespace stepscope
