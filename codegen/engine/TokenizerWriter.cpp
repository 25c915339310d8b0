#include "codegen/engine/EngineWriter.h"
#include "codegen/engine/tokenizer_generated.h"

namespace lathe::codegen {

namespace fb = engine::fb;

namespace {

const char *nameOf(runtime::TokenizerModel model) {
  switch (model) {
  case runtime::TokenizerModel::ByteLevelBpe:
    return "gpt2";
  case runtime::TokenizerModel::SentencePieceBpe:
    return "llama";
  case runtime::TokenizerModel::Unigram:
    return "t5";
  }
  return "";
}

} // namespace

std::vector<uint8_t> encodeTokenizer(const runtime::TokenizerSpec &spec) {
  fb::TokenizerT stored;
  stored.model = nameOf(spec.model);
  stored.pre = spec.preTokenizer;
  stored.tokens = spec.tokens;
  stored.scores = spec.scores;
  for (runtime::TokenType type : spec.types)
    stored.types.push_back(static_cast<uint8_t>(type));
  stored.merges = spec.merges;
  stored.bos = spec.bosId;
  stored.eos = spec.eosId;
  stored.eot = spec.eotId;
  stored.eom = spec.eomId;
  stored.unk = spec.unkId;
  stored.pad = spec.padId;
  stored.end_of_generation = spec.endIds;
  stored.add_bos = spec.addBos;
  stored.add_eos = spec.addEos;
  stored.add_space_prefix = spec.addSpacePrefix;
  stored.space_prefix_after_special = spec.spacePrefixAfterSpecial;
  stored.remove_extra_spaces = spec.removeExtraSpaces;
  stored.space_as_suffix = spec.spaceAsSuffix;
  stored.charsmap = spec.charsmap;
  stored.chat_template = spec.chatTemplate;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::CreateTokenizer(builder, &stored),
                 fb::TokenizerIdentifier());
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

} // namespace lathe::codegen
