/// \file
/// Conversations as the token ids that a model was trained on.
#ifndef LATHE_TOOLS_LATHE_CHATFORMAT_H
#define LATHE_TOOLS_LATHE_CHATFORMAT_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/Template.h"

#include <string>
#include <vector>

namespace lathe::tools {

/// One message of a conversation.
struct Message {
  std::string role; ///< "system", "user" or "assistant".
  std::string content;
};

/// A model's chat template with its tokenizer.
class ChatFormat {
public:
  /// Errors: NotFound (the model has no chat template), InvalidInput (it does
  /// not parse).
  static runtime::Result<ChatFormat> create(runtime::Tokenizer tokenizer);

  /// The ids of a conversation up to where the assistant's answer begins.
  /// Control tokens come only from the template: what messages spell stays
  /// text. Errors: those of Template::render and Tokenizer::encodeSegments.
  runtime::Result<std::vector<i32>>
  encode(const std::vector<Message> &messages) const;

private:
  ChatFormat(runtime::Tokenizer tokenizer, runtime::jinja::Template source)
      : tokenizer(std::move(tokenizer)), source(std::move(source)) {}

  runtime::Tokenizer tokenizer;
  runtime::jinja::Template source;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_CHATFORMAT_H
