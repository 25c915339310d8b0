#include "codegen/cpu/ClangCompiler.h"

#include "codegen/cpu/EmbeddedHeaders.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace lathe;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

namespace {

constexpr char sourcePath[] = "/lathe/kernels.cpp";
constexpr char includeRoot[] = "/lathe/include";

/// Runs Clang's cc1 on `source`; `action` is -emit-obj or -S.
Result<llvm::SmallVector<char, 0>> runClang(const std::string &source,
                                            const runtime::IsaLayer &isa,
                                            bool assembly) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(sourcePath, 0, llvm::MemoryBuffer::getMemBuffer(source));
  for (const codegen::EmbeddedHeader &header : codegen::embeddedHeaders())
    files->addFile(std::string(includeRoot) + "/" + std::string(header.path), 0,
                   llvm::MemoryBuffer::getMemBuffer(
                       llvm::StringRef(header.text), header.path,
                       /*RequiresNullTerminator=*/false));

  std::vector<std::string> args = {
      "-triple", "x86_64-unknown-linux-gnu",
      // Printed code is freestanding and sees no header but ours.
      "-ffreestanding", "-nostdsysteminc", "-nobuiltininc", "-I", includeRoot,
      "-std=c++20", "-O3", "-vectorize-loops", "-vectorize-slp", "-fno-rtti",
      "-ffp-contract=off", "-mrelocation-model", "pic", "-pic-level", "2",
      "-mframe-pointer=none", "-mprefer-vector-width=512", "-Wno-everything",
      "-target-cpu", "x86-64"};
  // Exactly what the layer's CPUs are asked for, so that no other instruction
  // can be in the code.
  for (const std::string &feature : isa.features) {
    args.emplace_back("-target-feature");
    args.push_back("+" + feature);
  }
  args.push_back("-DLATHE_ISA_" + llvm::StringRef(isa.name).upper());
  args.emplace_back(assembly ? "-S" : "-emit-obj");
  args.insert(args.end(), {"-x", "c++", sourcePath});
  std::vector<const char *> pointers;
  pointers.reserve(args.size());
  for (const std::string &arg : args)
    pointers.push_back(arg.c_str());

  std::string messages;
  llvm::raw_string_ostream messageStream(messages);
  clang::CompilerInstance compiler;
  auto options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  compiler.createDiagnostics(
      new clang::TextDiagnosticPrinter(messageStream, options.get()),
      /*ShouldOwnClient=*/true);
  llvm::SmallVector<char, 0> output;
  compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(output));
  bool ok = clang::CompilerInvocation::CreateFromArgs(
      compiler.getInvocation(), pointers, compiler.getDiagnostics());
  if (ok) {
    compiler.createFileManager(files);
    compiler.createSourceManager(compiler.getFileManager());
    if (assembly) {
      clang::EmitAssemblyAction action;
      ok = compiler.ExecuteAction(action);
    } else {
      clang::EmitObjAction action;
      ok = compiler.ExecuteAction(action);
    }
  }
  if (!ok)
    return fail(ErrorKind::Internal, "the printed kernels do not compile:\n{}",
                messages);
  return output;
}

Result<void> writeTemp(const std::string &path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error(); // else its destructor ends the process
  }
  if (error)
    return fail(ErrorKind::Environment, "cannot write {}: {}", path,
                error.message());
  return {};
}

/// A directory that is gone when this is.
struct TemporaryDirectory {
  llvm::SmallString<128> path;

  ~TemporaryDirectory() {
    if (!path.empty())
      (void)llvm::sys::fs::remove_directories(path);
  }
};

} // namespace

Result<std::vector<uint8_t>> codegen::compileSharedObject(
    const std::string &source, const runtime::IsaLayer &isa,
    const std::string &name, const std::string &saveTemps) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  if (!saveTemps.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(saveTemps))
      return fail(ErrorKind::Environment, "cannot make the folder {}: {}",
                  saveTemps, error.message());
    if (auto ok = writeTemp(saveTemps + "/" + name + ".cpp", source); !ok)
      return runtime::failFrom(ok);
    auto assembly = runClang(source, isa, /*assembly=*/true);
    if (!assembly)
      return runtime::failFrom(assembly);
    if (auto ok = writeTemp(saveTemps + "/" + name + ".s",
                            {assembly->data(), assembly->size()});
        !ok)
      return runtime::failFrom(ok);
  }
  auto object = runClang(source, isa, /*assembly=*/false);
  if (!object)
    return runtime::failFrom(object);
  llvm::StringRef objectBytes(object->data(), object->size());
  if (!saveTemps.empty())
    if (auto ok = writeTemp(saveTemps + "/" + name + ".o", objectBytes); !ok)
      return runtime::failFrom(ok);

  // lld works on files only.
  TemporaryDirectory directory;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("lathe", directory.path))
    return fail(ErrorKind::Environment,
                "cannot make a temporary folder: {} (is TMPDIR writable?)",
                error.message());
  std::string base(directory.path.str());
  std::string objectPath = base + "/kernels.o",
              sharedPath = base + "/kernels.so";
  if (auto ok = writeTemp(objectPath, objectBytes); !ok)
    return runtime::failFrom(ok);
  const char *linkArgs[] = {
      "ld.lld",           "-shared",          "--build-id=none",          "-z",
      "noexecstack",      "--hash-style=gnu", "-soname=lathe-kernels.so", "-o",
      sharedPath.c_str(), objectPath.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  bool linked = lld::elf::link(linkArgs, stream, stream, /*exitEarly=*/false,
                               /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!linked)
    return fail(ErrorKind::Internal, "the kernels do not link:\n{}", messages);
  auto shared = llvm::MemoryBuffer::getFile(sharedPath);
  if (!shared)
    return fail(ErrorKind::Environment, "cannot read {}: {}", sharedPath,
                shared.getError().message());
  const char *begin = (*shared)->getBufferStart();
  return std::vector<uint8_t>(begin, begin + (*shared)->getBufferSize());
}
