/// \file
/// Who proposes the next tokens of a sequence before the model has seen them.
#ifndef LATHE_RUNTIME_SPECULATE_PROPOSER_H
#define LATHE_RUNTIME_SPECULATE_PROPOSER_H

#include "runtime/sample/Sampler.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Drafts tokens that a scheduler has the model check, several in one step. A
/// drafted token is kept if and only if it equals the one that the model's
/// logits and the request's sampler give at its position, so a proposer decides
/// how fast an answer comes and never what it says (docs/numerics.md;
/// docs/add-a-proposer.md shows how to write one).
///
/// One thread at a time, together with its sequences.
class Proposer {
public:
  /// What a proposer knows of one sequence. It is dropped when the sequence
  /// ends or is preempted; then the tokens are told again from the start.
  class Sequence {
  public:
    virtual ~Sequence() = default;
  };

  /// One sequence for which a draft is wanted.
  struct Draft {
    Sequence *sequence;
    /// Prompt and answer so far; not empty. Those of the sequence's earlier
    /// calls come first, unchanged: what is new has been accepted since.
    std::span<const i32> tokens;
    /// How the request draws its tokens. Whoever draws the draft's token at a
    /// position by own logits with this sampler, and with `tokens` and the
    /// draft so far as the history, uses the noise that the model's own token
    /// is drawn with: so the two agree more often than by chance.
    Sampler *sampler;
    /// Most tokens to draft, perhaps 0: then the tokens are only told.
    u32 most;
    /// What is proposed, empty at first: tokens that follow `tokens`, one after
    /// the other. Longer ones are cut, and so is what follows an id outside the
    /// model's vocabulary.
    std::vector<i32> proposed = {};
    /// How sure the proposer is of it, below certainties. Only says which
    /// drafts are alike: how often each kind is right is measured.
    u32 certainty = 0;
  };
  static constexpr u32 certainties = 4;

  virtual ~Proposer() = default;

  /// A sequence of no tokens. Of what a proposer keeps for later sequences,
  /// only those of one salt may use each other's (Request::cacheSalt).
  virtual std::unique_ptr<Sequence> start(std::string_view salt) = 0;

  /// A second sequence that knows what this one knows.
  virtual std::unique_ptr<Sequence> fork(const Sequence &sequence) = 0;

  /// Drafts for sequences that share a step; no sequence is in there twice. A
  /// proposer that fails at one leaves its draft empty.
  virtual void propose(std::span<Draft> drafts) = 0;

  /// True if a token more takes time worth planning. Otherwise drafts may be
  /// asked for that are longer than what is then checked.
  virtual bool isCostly() const { return false; }

  /// The chance that a drafted token is right, before anything is measured.
  virtual f64 guessedAcceptance() const { return 0.5; }
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_PROPOSER_H
