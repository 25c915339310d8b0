// Asks a model one question and prints the answer as it comes.
#include <cstdio>
#include <lathe/lathe.h>

static int report(const lathe::Error &error) {
  std::fprintf(stderr, "ask: %s\n", error.message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ask ENGINE.lathe QUESTION   (Lathe %s)\n",
                 lathe::version());
    return 2;
  }
  auto model = lathe::Model::open(argv[1]);
  if (!model)
    return report(model.error());
  auto session = lathe::Session::create(*model);
  if (!session)
    return report(session.error());

  lathe::GenerateOptions options;
  options.maxTokens = 256;
  auto answer =
      session->chat({{"user", argv[2]}}, options, [](const std::string &text) {
        std::fputs(text.c_str(), stdout);
        std::fflush(stdout);
        return true;
      });
  if (!answer)
    return report(answer.error());
  std::printf("\n[%zu + %zu tokens, %.1f tokens/s]\n", answer->promptTokens,
              answer->tokens.size(), answer->decodeTokensPerSecond);
  return 0;
}
