//===- vocab_ids.cpp - Token ids out of llama.cpp -------------------------===//
//
// Loads only the vocabulary of a GGUF with libllama and answers each line of
// standard input, "ADD_SPECIAL PARSE_SPECIAL HEX", with a line of ids. HEX is
// the text's bytes in hexadecimal ("-" for none). Compiled and run by
// make_tokenizer.py.
//
//===----------------------------------------------------------------------===//

#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: vocab_ids MODEL.gguf < lines\n");
    return 2;
  }
  llama_log_set(
      [](ggml_log_level level, const char *text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR)
          std::fputs(text, stderr);
      },
      nullptr);
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model *model = llama_model_load_from_file(argv[1], params);
  if (!model) {
    std::fprintf(stderr, "vocab_ids: cannot load %s\n", argv[1]);
    return 1;
  }
  const llama_vocab *vocab = llama_model_get_vocab(model);

  int addSpecial = 0, parseSpecial = 0;
  std::string hex;
  while (std::cin >> addSpecial >> parseSpecial >> hex) {
    std::string text;
    for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2)
      text.push_back(
          static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    std::vector<llama_token> ids(2 * text.size() + 16);
    int count = llama_tokenize(vocab, text.data(), text.size(), ids.data(),
                               ids.size(), addSpecial, parseSpecial);
    if (count < 0) {
      std::fprintf(stderr, "vocab_ids: too many ids\n");
      return 1;
    }
    for (int i = 0; i < count; ++i)
      std::printf("%s%d", i ? " " : "", ids[i]);
    std::printf("\n");
  }
  llama_model_free(model);
  return 0;
}
