// The clients of a simulation. They make every kind of call, several at a time,
// and record the answers.

#pragma once

#include "troupe/runtime/runtime.hpp"
#include "troupe/runtime/session_writer.hpp"

#include "history.hpp"
#include "pipeline.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "readers.hpp"
#include "world.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

class traffic {
public:
  /// `programs` may hold null for a while. Client `n` uses the program with
  /// number `n` modulo their count.
  traffic(world& in,
          history& told,
          const plan& chosen,
          std::vector<std::unique_ptr<program>>& programs);

  void start();

  /// Wakes the clients whose program was closed.
  void wake();

  /// Lets the readers read to the end. Call when it is over.
  void finish() { readers_.finish(); }

  /// True when no client has anything to do or to wait for.
  bool is_over() const noexcept { return open_ == 0 && active_ == 0; }

  /// A request to end one program now.
  struct wish {
    std::size_t number;
    bool dies;
  };

  std::optional<wish> take_wish() { return std::exchange(wish_, {}); }

  bool has_wish() const noexcept { return wish_.has_value(); }

private:
  program* program_of(std::size_t client) const;
  void act(std::size_t client);
  void act_once(std::size_t client, runtime& on);
  void call_once(std::size_t client, runtime& on);
  void later(std::size_t client);

  call_record& note(std::size_t client, call_kind kind);
  template <class T, class Keep>
  completion<T> answer_to(call_record& call, Keep keep);
  void settle(call_record& call, const std::string& code);

  session_key any_session();
  std::uint64_t any_revision(const session_key& key);
  session_key any_session(dice& chance) const;
  void create(std::size_t client, session_service& sessions);
  void append(std::size_t client, session_service& sessions);
  void repeat(std::size_t client, session_service& sessions);
  void send(call_record& call, session_service& sessions);
  void send_in_order(call_record& call,
                     session_service& sessions,
                     completion<event_ptr> done);
  void get(std::size_t client, session_service& sessions);
  void list(std::size_t client, session_service& sessions);
  void remove(std::size_t client, session_service& sessions);
  void remove_user(std::size_t client, session_service& sessions);
  void read_state(std::size_t client, session_service& sessions);
  void write(std::size_t client, session_service& sessions);
  void rewind(std::size_t client, session_service& sessions);
  std::string any_run(const session_key& key);
  void fork(std::size_t client, session_service& sessions);
  void send_write(call_record& call, session_service& sessions);
  void run(std::size_t client, runtime& on);
  void follow(const std::shared_ptr<troupe::run>& started,
              run_record& record,
              std::size_t client);

  world& world_;
  history& told_;
  const plan& plan_;
  std::vector<std::unique_ptr<program>>& programs_;
  dice chance_;
  readers readers_;
  dice followed_; // Chooses the sessions of readers.
  std::shared_ptr<pipeline_setup> pipeline_;
  std::size_t left_;       // Operations still to begin.
  std::size_t open_ = 0;   // Calls and runs without an answer.
  std::size_t active_ = 0; // Clients with something scheduled.
  std::size_t bursts_ = 0;
  // The current burst of each client; bursts of several clients overlap.
  std::vector<std::size_t> burst_of_;
  std::vector<std::size_t> waits_;  // Open calls of each client's burst.
  std::vector<std::size_t> parked_; // Clients of closed programs.
  std::vector<std::string> cursors_;
  std::vector<session_key> forks_; // The newest keys of forks.
  // Indexed by burst and session; kept until the burst ends.
  std::map<std::pair<std::size_t, session_key>, session_writer> writers_;
  std::optional<wish> wish_;
};

} // namespace troupe::testing
