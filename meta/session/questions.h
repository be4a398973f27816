#pragma once
// What a run asks of the platform that it is on. Another platform that gives the same answers would have the same
// run: a sweep over devices dispatches it once (docs/explanation/search.md).

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace metaprof {

struct Platform;  // meta/platform/platform.h

class Questions {
 public:
  /// `question` takes a const Platform& and depends on nothing else that changes: what it needs besides it has copied.
  template <class Question, class Answer>
  void note(Question question, Answer answer) {
    asked_.push_back([question = std::move(question), answer = std::move(answer)](const Platform& other) {
      return question(other) == answer;
    });
  }
  /// A size of storages, on which nothing else in the run depends as long as it is not 0: takes a const Platform& and
  /// gives bytes. Its number, from 1.
  template <class Question>
  uint32_t note_size(Question question) {
    sizes_.emplace_back(std::move(question));
    return static_cast<uint32_t>(sizes_.size());
  }
  using Size = std::function<int64_t(const Platform&)>;
  const std::vector<Size>& sizes() const { return sizes_; }

  /// Whether another platform would have answered everything in the same way, but for sizes. Of the same version of the
  /// framework.
  bool has_same_answers(const Platform& other) const {
    for (const auto& same : asked_)
      if (!same(other)) return false;
    return true;
  }

 private:
  std::vector<std::function<bool(const Platform&)>> asked_;
  std::vector<Size> sizes_;
};

}  // namespace metaprof
