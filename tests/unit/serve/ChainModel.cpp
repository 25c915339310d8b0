#include "tests/unit/serve/ChainModel.h"
#include "tests/unit/engine/TinyEngine.h"
#include "tests/unit/serve/ChainTable.h"
#include "tests/unit/text/Vocabularies.h"

#include <cmath>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

TokenizerSpec tests::chainTokenizer() {
  TokenizerSpec spec = runtime::test::byteLevelSpec(
      "gpt-2", {{"D", "E"}, {"DE", "F"}, {"H", "I"}});
  spec.addBos = true;
  spec.chatTemplate =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
      "<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\n' }}";
  return spec;
}

std::map<std::string, Followers>
tests::chain(const std::vector<std::string> &tokens) {
  std::map<std::string, Followers> followers;
  for (size_t i = 0; i + 1 < tokens.size(); ++i)
    followers[tokens[i]] = {{tokens[i + 1], 0.0f}};
  return followers;
}

/// The logits that follow each token, and the pauses.
static std::vector<f32> tableOf(const ChainSpec &spec) {
  Tokenizer tokenizer = runtime::test::makeTokenizer(spec.tokenizer);
  std::map<std::string, u32> ids;
  for (i32 id = 0; id < tokenizer.vocabularySize(); ++id)
    ids.emplace(tokenizer.tokenBytes(id), u32(id));
  // "#505" is an id that the tokenizer does not know.
  auto idOf = [&](const std::string &name) {
    return name.size() > 1 && name[0] == '#' ? u32(std::stoul(name.substr(1)))
                                             : ids.at(name);
  };
  std::vector<f32> table((tableVocab + 1) * tableVocab, -40.0f);
  for (u32 id = 0; id < tableVocab; ++id)
    table[id * tableVocab + id] = 0;
  for (const auto &[before, followers] : spec.followers) {
    u32 row = idOf(before);
    table[row * tableVocab + row] = -40;
    for (const auto &[after, logit] : followers)
      table[row * tableVocab + idOf(after)] = logit;
  }
  table[tableVocab * tableVocab] = f32(spec.pausesPerStep);
  return table;
}

std::shared_ptr<const LoadedEngine> tests::loadChain(const ChainSpec &spec,
                                                     const std::string &path) {
  codegen::EngineDescription engine = tinyDescription();
  engine.model.name = "chain";
  engine.model.vocab = tableVocab;
  engine.model.context = 256;
  codegen::WeightPlacer placer;
  for (const codegen::EngineWeight &weight : engine.weights)
    EXPECT_TRUE(
        placer.add(weight.format, weight.layout, weight.rows, weight.k));
  auto place =
      placer.add(kernels::Format::F32, "rows", tableVocab + 1, tableVocab);
  EXPECT_TRUE(place && place->offset == tableOffset) << place->offset;
  engine.weights.push_back(
      {"table", "table.weight", kernels::Format::F32, "rows", tableVocab + 1,
       tableVocab, [&](const codegen::ByteSink &sink) {
         std::vector<f32> table = tableOf(spec);
         return sink({reinterpret_cast<const u8 *>(table.data()),
                      table.size() * sizeof(f32)});
       }});
  for (codegen::EngineTarget &target : engine.targets)
    target.object = readBytes(LATHE_CHAIN_CODE);
  engine.tokenizer = spec.tokenizer;
  auto written = codegen::writeEngine(path, engine);
  EXPECT_TRUE(written) << written.error().message;
  auto loaded = LoadedEngine::load(openOrFail(path), "generic");
  EXPECT_TRUE(loaded) << loaded.error().message;
  return *loaded;
}

ChainServer::ChainServer(const ChainSpec &spec, const std::string &folder) {
  auto loaded = loadChain(spec, folder + "/chain.lathe");
  auto made = ServingEngine::create(loaded, spec.options);
  EXPECT_TRUE(made) << made.error().message;
  serving = std::move(*made);
  auto model = TextModel::create(loaded);
  EXPECT_TRUE(model) << model.error().message;
  served = std::make_shared<serve::ServedModel>(*model, *serving, "chain",
                                                "fp_chain", i64(1700000000));
}

ChainServer::~ChainServer() = default;
