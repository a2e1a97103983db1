#include "engine/comm/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <map>

namespace stepscope {
namespace {

// Values of MPICH's common interface (mpi.h of MPICH 3 and later).
constexpr std::uintptr_t kMpichWorld = 0x44000000, kMpichByte = 0x4c00010d, kMpichErrorsReturn = 0x54000001;

MpiLibrary::Handle number(std::uintptr_t value) { return reinterpret_cast<MpiLibrary::Handle>(value); }

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<const MpiLibrary*> MpiLibrary::load(const std::string& path) {
  static std::map<std::string, MpiLibrary> loaded;  // for good: MPI cannot be begun twice in a process
  if (const auto found = loaded.find(path); found != loaded.end()) return &found->second;
  constexpr std::array kNames{"libmpi.so.40", "libmpi.so.12", "libmpi.so"};
  void* library = nullptr;
  std::string why, names;
  // Its plugins look for its symbols among those of the program.
  const auto open = [&](const char* name) {
    if (library) return;
    library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library) why = dlerror();
    names += (names.empty() ? "" : ", ") + std::string(name);
  };
  if (path.empty())
    for (const char* name : kNames) open(name);
  else
    open(path.c_str());
  if (!library)
    return unsupported(
        fmt::format("MPI: no library ({}; looked for {}); expected Open MPI or one with the interface of "
                    "MPICH; hint: the package openmpi-bin brings one; --distributed local needs none",
                    why, names));
  MpiLibrary mpi;
  const bool all = find(library, "MPI_Init_thread", mpi.initThread) && find(library, "MPI_Query_thread", mpi.queryThread) &&
                   find(library, "MPI_Initialized", mpi.initialized) && find(library, "MPI_Comm_rank", mpi.commRank) &&
                   find(library, "MPI_Comm_size", mpi.commSize) && find(library, "MPI_Isend", mpi.isend) &&
                   find(library, "MPI_Irecv", mpi.irecv) && find(library, "MPI_Test", mpi.test) &&
                   find(library, "MPI_Finalize", mpi.finalize) &&
                   find(library, "MPI_Get_library_version", mpi.getLibraryVersion) &&
                   find(library, "MPI_Comm_set_errhandler", mpi.setErrorHandler);
  if (!all) return unsupported(fmt::format("MPI: '{}' lacks functions of MPI 3; expected all of them", names));
  if (void* const world = dlsym(library, "ompi_mpi_comm_world")) {
    mpi.world_ = world;
    mpi.byte_ = dlsym(library, "ompi_mpi_byte");
    mpi.errorsReturn_ = dlsym(library, "ompi_mpi_errors_return");
    if (!mpi.byte_ || !mpi.errorsReturn_)
      return unsupported(fmt::format("MPI: '{}' lacks ompi_mpi_byte; expected it of Open MPI", names));
  } else if (dlsym(library, "MPIR_F08_MPI_IN_PLACE") || dlsym(library, "MPIR_Err_create_code") ||
             dlsym(library, "MPIX_Query_cuda_support")) {
    mpi.world_ = number(kMpichWorld);
    mpi.byte_ = number(kMpichByte);
    mpi.errorsReturn_ = number(kMpichErrorsReturn);
    mpi.statusIgnore_ = number(1);
  } else {
    return unsupported(
        fmt::format("MPI: '{}' is neither Open MPI nor one with the interface of MPICH; expected one of them", names));
  }
  return &loaded.emplace(path, mpi).first->second;
}

std::string MpiLibrary::version() const {
  std::string text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING of the largest
  int length = 0;
  if (getLibraryVersion(text.data(), &length) != 0) return "unknown version";
  text.resize(static_cast<std::size_t>(length));
  text.resize(std::min(text.find_first_of(",\n"), text.size()));
  return text;
}

}  // namespace stepscope
