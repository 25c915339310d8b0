#include "passes/Pipeline.h"

#include "mlir/Transforms/Passes.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::passes;

using Made = std::unique_ptr<mlir::Pass>;
using Options = PipelineOptions;

static const Phase table[] = {
    {1, "canonicalize", "fold and clean up", false, false,
     [](const Options &) -> Made { return mlir::createCanonicalizerPass(); }},
    {2, "fuse-attention", "decomposed attention becomes one op", false, false,
     [](const Options &) -> Made { return createFuseAttention(); }},
    {3, "merge-linears", "linears over one input become one", false, false,
     [](const Options &) -> Made { return createMergeLinears(); }},
    {5, "quantize-activations",
     "inputs of quantized weights become int8 blocks", false, false,
     [](const Options &) -> Made { return createQuantizeActivations(); }},
    {6, "kv-cache-layout", "the sequence becomes a step over a paged KV cache",
     false, false,
     [](const Options &options) -> Made {
       KvCacheLayoutOptions passOptions;
       passOptions.dtype = options.kvDtype;
       return createKvCacheLayout(passOptions);
     }},
    {8, "form-kernels", "the graph becomes kernels and launches", true, true,
     [](const Options &options) -> Made {
       return createFormKernels(options.target);
     }},
    {9, "skip-unwanted-rows", "hidden states only of rows that want them",
     false, true,
     [](const Options &) -> Made { return createSkipUnwantedRows(); }},
    {10, "pack-weights", "weights get the target's layout", true, true,
     [](const Options &options) -> Made {
       return createPackWeights(options.target);
     }},
    {11, "plan-memory", "buffers get slots, launches their waits", true, true,
     [](const Options &) -> Made { return createPlanMemory(); }},
};

std::span<const Phase> passes::phases() { return table; }

const Phase *passes::findPhase(std::string_view name) {
  const auto *found =
      std::find_if(std::begin(table), std::end(table),
                   [&](const Phase &phase) { return phase.name == name; });
  return found == std::end(table) ? nullptr : found;
}
