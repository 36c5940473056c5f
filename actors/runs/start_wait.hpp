// The wait of a run whose first commit was refused: its message, if an open run
// of another process keeps it out or has claimed the pause that it answers; its
// claim, if the run that it recovers is not free any more, or its history is
// not in memory.
//
// It reads the open runs of the session, which is cheap, and lets the run send
// its message or claim again only when none of them keeps it out.

#pragma once

#include "troupe/actors/runs/wait_answer.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/store.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// Belongs to the invocation of the run, and does nothing more once that has
/// dropped it. Each of its steps begins when the one before has ended.
class start_wait : public std::enable_shared_from_this<start_wait> {
public:
  struct settings {
    session_key session;
    std::string invocation_id;
    bool queues = true;    ///< False: the run ends if it is kept out.
    bool recovers = false; ///< True: the run is open, and is being recovered.
    bool is_alone = true;  ///< False: other open runs do not keep it out.
  };

  /// `run` is used only as a weak reference to the invocation.
  start_wait(std::shared_ptr<setup> shared,
             settings chosen,
             std::shared_ptr<wait_answer> run);

  /// Tells the run when to send its message again (`try_again`), or that it
  /// ends. `refusal` is the error of the message. The first call looks at once,
  /// later ones after a delay that grows. Call again after each refusal.
  ///
  /// `ends_alone` is true if another run has claimed the pause that the message
  /// answers. The run waits while runs of other processes are open. When none
  /// is, it sends its message once more. It ends if that is refused, too, and
  /// there is still no such run.
  void await(const error& refusal, bool ends_alone);

private:
  using holder = std::optional<result<former_holder>>;

  void look_later();
  void look();
  void find_own();
  void look_ahead(const holder& found);
  void decide(result<std::vector<open_run>> ahead, const holder& found);
  void tell(holder found);
  void warn_once(const open_run& ahead);

  const std::shared_ptr<setup> shared_;
  const settings chosen_;
  const std::shared_ptr<wait_answer> run_;
  const std::chrono::nanoseconds began_;
  std::optional<error> refusal_;
  std::chrono::milliseconds delay_{20};
  bool ends_alone_ = false;
  bool was_alone_ = false;
  bool has_looked_ = false;
  bool has_warned_ = false;
};

} // namespace troupe::actors
