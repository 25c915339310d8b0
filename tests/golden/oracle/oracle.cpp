//===- oracle.cpp - Logits and greedy ids out of llama.cpp ----------------===//
//
// Loads a GGUF with libllama (one thread, no flash attention, F32 KV cache, no
// weight repacking) and answers one command per line of standard input with one
// line of JSON on standard output:
//
//   tokenize ADD_BOS PARSE_SPECIAL HEX    -> {"ids": [...]}
//   greedy COUNT ID...                    -> {"ids": [...], "gaps": [...]}
//   logits OUT.npy ID...                  -> {"rows": N, "vocab": V}
//
// HEX is the text's bytes in hexadecimal ("-" for none). A gap is the best
// logit minus the second best. Greedy ends after COUNT ids, never earlier: end
// tokens count as any other. Each command starts from an empty cache. The
// logits of all positions go to a float32 .npy of shape [N, V].
//
//===----------------------------------------------------------------------===//

#include "llama.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "oracle: %s\n", message.c_str());
  std::exit(1);
}

std::string bytesOfHex(const std::string &hex) {
  if (hex == "-")
    return {};
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(
        static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

void printIds(const std::vector<llama_token> &ids) {
  std::printf("\"ids\": [");
  for (size_t i = 0; i < ids.size(); ++i)
    std::printf("%s%d", i ? ", " : "", ids[i]);
  std::printf("]");
}

/// A context of libllama with the settings that every golden file uses.
class Oracle {
public:
  /// \p contextTokens bounds prompt + generated tokens of one command.
  Oracle(const char *path, int contextTokens) {
    llama_model_params modelParams = llama_model_default_params();
    modelParams.use_extra_bufts = false;
    model = llama_model_load_from_file(path, modelParams);
    if (!model)
      die(std::string("cannot load ") + path);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = contextTokens;
    params.n_batch = contextTokens;
    params.n_ubatch = contextTokens;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    context = llama_init_from_model(model, params);
    if (!context)
      die("cannot make a context");
    vocab = llama_model_get_vocab(model);
    vocabSize = llama_vocab_n_tokens(vocab);
  }
  ~Oracle() {
    llama_free(context);
    llama_model_free(model);
  }
  Oracle(const Oracle &) = delete;
  Oracle &operator=(const Oracle &) = delete;

  void tokenize(std::istringstream &in) {
    int addBos = 0, parseSpecial = 0;
    std::string hex;
    in >> addBos >> parseSpecial >> hex;
    std::string text = bytesOfHex(hex);
    std::vector<llama_token> ids(text.size() + 16);
    int count = llama_tokenize(vocab, text.data(), text.size(), ids.data(),
                               ids.size(), addBos, parseSpecial);
    if (count < 0)
      die("tokenize: too many ids");
    ids.resize(count);
    std::printf("{");
    printIds(ids);
    std::printf("}\n");
  }

  void greedy(std::istringstream &in) {
    size_t count = 0;
    in >> count;
    std::vector<llama_token> prompt = readIds(in), out;
    std::vector<float> gaps;
    llama_memory_clear(llama_get_memory(context), true);
    decode(prompt, 0, false);
    size_t last = prompt.size() - 1;
    while (true) {
      const float *logits = llama_get_logits_ith(context, last);
      int best = 0;
      float second = -INFINITY;
      for (int i = 1; i < vocabSize; ++i) {
        if (logits[i] > logits[best]) {
          second = logits[best];
          best = i;
        } else if (logits[i] > second) {
          second = logits[i];
        }
      }
      out.push_back(best);
      gaps.push_back(logits[best] - second);
      if (out.size() >= count)
        break;
      decode({best}, prompt.size() + out.size() - 1, false);
      last = 0;
    }
    std::printf("{");
    printIds(out);
    std::printf(", \"gaps\": [");
    for (size_t i = 0; i < gaps.size(); ++i)
      std::printf("%s%.6g", i ? ", " : "", gaps[i]);
    std::printf("]}\n");
  }

  void logits(std::istringstream &in) {
    std::string path;
    in >> path;
    std::vector<llama_token> ids = readIds(in);
    llama_memory_clear(llama_get_memory(context), true);
    decode(ids, 0, true);
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file)
      die("cannot write " + path);
    // .npy version 1.0: magic, header length, header padded to 64 bytes.
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(ids.size()) + ", " +
                         std::to_string(vocabSize) + "), }";
    header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
    header.back() = '\n';
    const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const uint16_t length = header.size();
    bool ok = std::fwrite(magic, 1, 8, file) == 8 &&
              std::fwrite(&length, 2, 1, file) == 1 &&
              std::fwrite(header.data(), 1, length, file) == length;
    for (size_t i = 0; ok && i < ids.size(); ++i)
      ok = std::fwrite(llama_get_logits_ith(context, i), sizeof(float),
                       vocabSize, file) == static_cast<size_t>(vocabSize);
    if (std::fclose(file) != 0 || !ok)
      die("cannot write " + path);
    std::printf("{\"rows\": %zu, \"vocab\": %d}\n", ids.size(), vocabSize);
  }

private:
  std::vector<llama_token> readIds(std::istringstream &in) const {
    std::vector<llama_token> ids;
    for (llama_token id; in >> id;) {
      if (id < 0 || id >= vocabSize)
        die("id " + std::to_string(id) + " is outside the vocabulary");
      ids.push_back(id);
    }
    if (ids.empty())
      die("no ids given");
    return ids;
  }

  /// Runs \p ids from absolute position \p start; logits of all rows, or of the
  /// last one only.
  void decode(const std::vector<llama_token> &ids, size_t start, bool all) {
    llama_batch batch = llama_batch_init(ids.size(), 0, 1);
    batch.n_tokens = ids.size();
    for (size_t i = 0; i < ids.size(); ++i) {
      batch.token[i] = ids[i];
      batch.pos[i] = start + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = all || i + 1 == ids.size();
    }
    int status = llama_decode(context, batch);
    llama_batch_free(batch);
    if (status != 0)
      die("llama_decode failed with status " + std::to_string(status));
  }

  llama_model *model = nullptr;
  llama_context *context = nullptr;
  const llama_vocab *vocab = nullptr;
  int vocabSize = 0;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: oracle MODEL.gguf CONTEXT_TOKENS < commands\n");
    return 2;
  }
  llama_log_set(
      [](ggml_log_level level, const char *text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR)
          std::fputs(text, stderr);
      },
      nullptr);
  llama_backend_init();
  {
    Oracle oracle(argv[1], std::atoi(argv[2]));
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream in(line);
      std::string command;
      in >> command;
      if (command == "tokenize")
        oracle.tokenize(in);
      else if (command == "greedy")
        oracle.greedy(in);
      else if (command == "logits")
        oracle.logits(in);
      else
        die("unknown command '" + command + "'");
      std::fflush(stdout);
    }
  }
  llama_backend_free();
  return 0;
}
