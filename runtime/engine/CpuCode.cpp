#include "runtime/engine/CpuCode.h"

#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// Linux 6.3; the headers of Debian 12 are older than many kernels it runs on.
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace lathe::runtime {

namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

Result<void> checkElf(std::span<const uint8_t> object) {
  Elf64_Ehdr header;
  bool fits = object.size() >= sizeof(header);
  if (fits)
    std::memcpy(&header, object.data(), sizeof(header));
  if (!fits || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64 ||
      header.e_type != ET_DYN)
    return fail(ErrorKind::InvalidInput,
                "the code is not a shared object for x86-64 (64-bit ELF)");
  return {};
}

tl::unexpected<Error> failErrno(const char *action) {
  return fail(ErrorKind::Environment,
              "cannot {} memory for the engine's code: {}; the system must "
              "allow executable memory files (sysctl vm.memfd_noexec < 2)",
              action, std::strerror(errno));
}

/// A memory file with the object's bytes that nobody can change any more.
Result<void> sealedCopy(std::span<const uint8_t> object, Descriptor &file) {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  file.fd = ::memfd_create("lathe-code", flags | MFD_EXEC);
  if (file.fd < 0 && errno == EINVAL) // a kernel that does not know MFD_EXEC
    file.fd = ::memfd_create("lathe-code", flags);
  if (file.fd < 0)
    return failErrno("make");
  while (!object.empty()) {
    ssize_t written = ::write(file.fd, object.data(), object.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failErrno("fill");
    object = object.subspan(static_cast<size_t>(written));
  }
  if (::fcntl(file.fd, F_ADD_SEALS,
              F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failErrno("seal");
  return {};
}

/// A path of the descriptor that no earlier call used. The dynamic linker takes
/// a name that it has loaded before for the same object, and descriptor numbers
/// come round again.
std::string uniquePath(int fd) {
  static std::atomic<uint64_t> loads = 0;
  std::string path = "/proc/self/fd";
  for (uint64_t number = loads++; number; number >>= 1)
    path += number & 1 ? "/." : "/";
  return path + "/" + std::to_string(fd);
}

Result<void *> find(void *handle, const std::string &symbol) {
  if (void *address = ::dlsym(handle, symbol.c_str()))
    return address;
  return fail(ErrorKind::InvalidInput,
              "the code has no symbol {}; compile the model again",
              quoted(symbol));
}

} // namespace

void CpuCode::Unload::operator()(void *handle) const { ::dlclose(handle); }

Result<CpuCode> CpuCode::load(std::span<const uint8_t> object,
                              const engine::fb::Program &program) {
  if (auto valid = checkElf(object); !valid)
    return failFrom(valid);
  Descriptor file;
  if (auto copied = sealedCopy(object, file); !copied)
    return failFrom(copied);

  CpuCode code;
  code.handle.reset(
      ::dlopen(uniquePath(file.fd).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!code.handle) {
    const char *reason = ::dlerror();
    return fail(ErrorKind::Environment,
                "the dynamic linker refuses the engine's code: {}",
                reason ? reason : "unknown reason");
  }
  for (const engine::fb::EntryPoint *entry : *program.entries()) {
    auto address =
        find(code.handle.get(), std::string(viewOf(entry->symbol())));
    if (!address)
      return failFrom(address);
    code.entries.push_back({std::string(viewOf(entry->name())),
                            reinterpret_cast<StepFunction>(*address)});
  }
  for (uint32_t id = 0; id < program.kernels()->size(); ++id) {
    auto address = find(code.handle.get(), fmt::format("lathe_kernel_{}", id));
    if (!address)
      return failFrom(address);
    code.kernels.push_back(reinterpret_cast<KernelFunction>(*address));
  }
  return code;
}

StepFunction CpuCode::entry(std::string_view name) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return entry.function;
  return nullptr;
}

} // namespace lathe::runtime
