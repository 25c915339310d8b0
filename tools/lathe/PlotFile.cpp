#include "tools/lathe/PlotFile.h"

#include "runtime/support/Quote.h"
#include "tools/lathe/Places.h"

#include <cstdint>
#include <filesystem>

using namespace lathe;
using namespace lathe::tools;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

Result<PlotFile> PlotFile::open(const std::string &path,
                                const std::string &model) {
  PlotFile plot;
  if (path.empty())
    return plot;
  auto source = findModel(model);
  std::error_code error;
  if (source && std::filesystem::equivalent(*source, path, error))
    return fail(ErrorKind::InvalidInput,
                "{} is read and must not be written over; give another --svg",
                runtime::displayPath(path));
  auto file = runtime::AtomicFile::create(path);
  if (!file)
    return failFrom(file, "--svg");
  plot.file.emplace(std::move(*file));
  return plot;
}

Result<void> PlotFile::save(const std::string &svg) {
  if (auto written = file->append(
          {reinterpret_cast<const uint8_t *>(svg.data()), svg.size()});
      !written)
    return written;
  return file->commit();
}
