/// \file
/// Drafts by a smaller model.
#ifndef LATHE_RUNTIME_SPECULATE_DRAFTMODELPROPOSER_H
#define LATHE_RUNTIME_SPECULATE_DRAFTMODELPROPOSER_H

#include "runtime/device/StepExecutor.h"
#include "runtime/kv/PrefixTree.h"
#include "runtime/speculate/Proposer.h"

namespace lathe::runtime {

/// Lets a draft model answer ahead, with its own KV cache and in its own steps,
/// which all sequences share: one step for the tokens that were accepted, then
/// one per drafted token. Tokens are drawn with each request's sampler, hence
/// with the noise that the target's own tokens are drawn with ("Gumbel
/// coupling", Daliri et al., 2024, arXiv 2408.07978).
///
/// A long prompt is caught up with in steps of at most the executor's rows, one
/// for each propose(); until then its sequence gets no draft. Where pages run
/// out, and past the draft model's context, there is none either.
class DraftModelProposer : public Proposer {
public:
  struct Options {
    u32 vocab = 0;      ///< Of the target: ids from there on are not proposed.
    u32 context = 0;    ///< Of the draft model, in tokens.
    u32 mostTokens = 8; ///< Of a draft; as in groupsFor().
  };

  /// `executor` and `cache` are the draft model's; the cache is one of
  /// groupsFor(). They must outlive it. Whether the two models have one
  /// vocabulary is for the caller to check (checkSameVocabulary()). Errors:
  /// Internal (no context, no vocabulary).
  static Result<std::unique_ptr<DraftModelProposer>>
  create(StepExecutor &executor, KvCache &cache, const Options &options);

  /// The KV groups for the proposer's cache: windows keep as many keys more as
  /// a draft that was wrong may have to be undone.
  static std::vector<KvGroupInfo> groupsFor(std::span<const KvGroupInfo> groups,
                                            u32 mostTokens);

  std::unique_ptr<Sequence> start(std::string_view salt) override;
  std::unique_ptr<Sequence> fork(const Sequence &sequence) override;
  void propose(std::span<Draft> drafts) override;
  bool isCostly() const override { return true; }
  /// High: if drafts do not seem to pay at first, nobody finds out that they
  /// do.
  f64 guessedAcceptance() const override { return 0.8; }

  /// As of the prefix cache: PrefixTree::isConsistent() and countPages(); for
  /// tests.
  bool isConsistent() const { return tree.isConsistent(); }
  void countCachedPages(u32 group, std::span<u32> counts) const {
    tree.countPages(group, counts);
  }

private:
  class Follower;

  /// A draft in progress.
  struct Work {
    Draft *draft;
    Follower *follower;
    u32 rows = 0;         ///< Of the step in progress.
    bool isReady = false; ///< With that step it has all tokens.
    bool isDone = false;
  };

  DraftModelProposer(StepExecutor &executor, KvCache &cache,
                     const Options &options);
  void proposeSome(std::span<Draft> drafts);
  /// Makes the draft model's sequence a part of the tokens. False: it cannot.
  bool follow(Work &work, std::span<const Work> before);
  void catchUp(std::span<Work> works);
  bool extend(Work &work, u32 rows);
  bool evaluate(std::span<const Work> works);
  void drawTokens(std::span<Work> works);
  void drawByPick(std::span<Work *const> works, std::span<const u32> rows);
  void drawByLogits(std::span<Work *const> works, std::span<const u32> rows);
  static void take(Work &work, i32 token);

  StepExecutor *executor;
  KvCache *cache;
  Options options;
  PrefixTree tree;
  std::vector<f32> paddedLogits; ///< Where the draft's vocabulary is smaller.
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_DRAFTMODELPROPOSER_H
