// One thread that makes the calls of a history. It blocks for some of its calls
// and keeps others under way.

#pragma once

#include "../../random.hpp"
#include "recording.hpp"

#include <cstddef>
#include <deque>
#include <semaphore>
#include <string>

namespace troupe::testing {

class caller {
public:
  /// Notes the calls in `notes`. `all` and `notes` must outlive this, and this
  /// must outlive the delivery of the answers.
  caller(recording& all, std::deque<recorded_call>& notes, std::size_t index);

  /// Makes this number of random calls, and waits for all answers.
  void run(std::size_t count);

private:
  void take_step();
  recorded_call& new_note(std::size_t channel);
  template <class T, class Start, class Look>
  void ask(recorded_call& on, const Start& start, Look look);
  void append(std::size_t session, recorded_call& on, event said);
  void append_tokens(std::size_t session);
  void append_twice(std::size_t session, recorded_call& on, event said);
  void use_register(std::size_t session);
  /// Chooses an operation on a register of the owner, and notes it.
  operation choose(recorded_call& on, std::size_t at);
  void write_shared(std::size_t session);
  void send_write(std::size_t at, recorded_call& on, const operation& wanted);
  void write_until_known(std::size_t at,
                         const operation& wanted,
                         const std::string& id,
                         completion<shared_write> done);
  void move_amount(std::size_t session);
  void get(std::size_t session);
  void get_wide(std::size_t session);
  void list();
  static void record(event& said,
                     const std::string& key,
                     operation_kind kind,
                     json operand);

  recording& all_;
  session_service& sessions_;
  std::deque<recorded_call>& notes_;
  const std::size_t index_;
  random_source random_;
  std::counting_semaphore<> slots_;
};

} // namespace troupe::testing
