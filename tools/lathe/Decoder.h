/// \file
/// The hyper-parameters that decide a decoder's sizes, however they are written
/// down.
#ifndef LATHE_TOOLS_LATHE_DECODER_H
#define LATHE_TOOLS_LATHE_DECODER_H

#include "runtime/schedule/ModelShape.h"
#include "runtime/support/Result.h"

#include <string>
#include <string_view>

namespace lathe::tools {

/// What an architecture has beside what all have.
struct DecoderFamily {
  std::string_view name;      ///< In config.json: model_type.
  bool attentionBias = false; ///< Of q, k and v.
  bool headNorms = false;     ///< Of q and k.
  u32 layerNorms = 2;
};

/// By name; null if it is unknown.
const DecoderFamily *findFamily(std::string_view name);

/// "gemma3, llama, …"
std::string knownFamilies();

struct Decoder {
  std::string name = {};
  const DecoderFamily *family = nullptr;
  u64 layers = 0, hidden = 0, feedForward = 0;
  u64 heads = 0, kvHeads = 0, headDim = 0;
  u64 vocab = 0, context = 0;
  u64 window = 0;
  u64 windowedLayers = 0;
  bool tied = false; ///< The head's matrix is that of the embeddings.

  /// The shape, with parameters counted. Errors: InvalidInput (a number that
  /// is 0 or beyond any model's, named as a config.json has it).
  runtime::Result<runtime::ModelShape> shape() const;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_DECODER_H
