#include "storage/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

#include "storage/report/csv_report.h"
#include "storage/report/data.h"
#include "storage/report/html_writer.h"
#include "storage/report/json_report.h"
#include "storage/report/run_document.h"
#include "storage/report/text_writer.h"
#include "storage/report/trace_report.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

std::string textOf(const ReportData& data, const std::string& path) {
  const auto endsWith = [&](std::string_view ending) { return path.ends_with(ending); };
  if (endsWith(".html")) return htmlOf(runDocument(data));
  if (endsWith(".txt")) return plainTextOf(runDocument(data));
  if (endsWith(".json")) return jsonReport(data);
  if (endsWith(".ops.csv")) return opsCsv(data);
  if (endsWith(".instructions.csv")) return instructionsCsv(data);
  if (endsWith(".roofline.csv")) return rooflineCsv(data);
  if (endsWith(".phases.csv")) return phasesCsv(data);
  return stepsCsv(data);
}

Status checkEnding(const std::string& path) {
  for (const std::string_view ending : {".html", ".txt", ".json", ".csv"})
    if (path.ends_with(ending)) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("report '{}': unknown ending; expected .html, .txt, .json, .csv, "
                          ".ops.csv, .instructions.csv, .roofline.csv, .phases.csv or .trace.json",
                          path));
}

Status checkPlace(const std::filesystem::path& path) {
  std::error_code error;
  const auto there = std::filesystem::symlink_status(path, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) && !std::filesystem::is_symlink(there))
    return fail(ErrorCode::kIo,
                fmt::format("report '{}': is no regular file; expected a file or a new name", path.string()));
  return {};
}

// Under a temporary name first.
Status writeWhole(const std::filesystem::path& path, const std::function<Status(std::ostream&)>& write) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", getpid());
  {
    std::ofstream out(temporary, std::ios::binary);
    const Status written = out ? write(out) : Status();
    out.flush();
    if (!out || !written) {
      const int reason = errno;
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      if (!written) return written;
      return fail(ErrorCode::kIo,
                  fmt::format("report '{}': {}; expected a writable folder", path.string(), std::strerror(reason)));
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  return fail(ErrorCode::kIo, fmt::format("report '{}': {}; expected a writable place", path.string(), error.message()));
}

}  // namespace

Status writeReport(const Project& project, std::int64_t run, const std::filesystem::path& path) {
  SS_STORE_TRY(checkPlace(path));
  SS_STORE_TRY(checkEnding(path.string()));
  const ReadTransaction oneMoment(project.connection());
  SS_STORE_ASSIGN(const ReportData data, readReportData(project, run));
  return writeWhole(path, [&](std::ostream& out) -> Status {
    if (path.string().ends_with(".trace.json"))
      SS_STORE_TRY(writeTrace(project, data, out));
    else
      out << textOf(data, path.string());
    if (project.stopped()) return fail(ErrorCode::kCancelled, fmt::format("report '{}': cancelled", path.string()));
    return {};
  });
}

Status writeReport(const doc::Document& document, const std::filesystem::path& path) {
  SS_STORE_TRY(checkPlace(path));
  const auto writes = [&](std::string (*textOf)(const doc::Document&)) {
    return writeWhole(path, [&, textOf](std::ostream& out) {
      out << textOf(document);
      return Status();
    });
  };
  if (path.extension() == ".html") return writes(htmlOf);
  if (path.extension() == ".txt") return writes(plainTextOf);
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("report '{}': unknown ending; expected .html or .txt", path.string()));
}

}  // namespace stepscope::storage
