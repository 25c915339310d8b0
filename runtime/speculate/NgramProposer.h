/// \file
/// Drafts from what the text itself has said before.
#ifndef LATHE_RUNTIME_SPECULATE_NGRAMPROPOSER_H
#define LATHE_RUNTIME_SPECULATE_NGRAMPROPOSER_H

#include "runtime/speculate/Proposer.h"

namespace lathe::runtime {

/// Prompt lookup: looks for the longest end of prompt and answer that has
/// occurred in them before (SuffixAutomaton) and proposes what followed there.
/// Good where answers quote: edits, summaries, code. It takes no model, next to
/// no time and SuffixAutomaton's bytes per token.
///
/// Sources: Saxena, 2023, "Prompt Lookup Decoding"; Hu et al., 2024, "SAM
/// Decoding" (arXiv 2411.10666), section 3.
class NgramProposer : public Proposer {
public:
  struct Options {
    /// Fewest tokens that must have occurred before, > 0.
    u32 leastMatch = 2;
  };

  NgramProposer() : NgramProposer(Options()) {}
  explicit NgramProposer(Options options) : options(options) {}

  std::unique_ptr<Sequence> start(std::string_view salt) override;
  std::unique_ptr<Sequence> fork(const Sequence &sequence) override;
  void propose(std::span<Draft> drafts) override;

private:
  Options options;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_NGRAMPROPOSER_H
