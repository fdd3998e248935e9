// The messages of a chat. They live in the client: the daemon keeps nothing between turns but its
// prefix cache. Main thread only.
#pragma once

#include <optional>
#include <string>

#include "ipc/protocol.h"

namespace tgi {

class Conversation {
 public:
  const ipc::OrderedJson& messages() const { return messages_; }

  // Puts the system message first, or replaces it; an empty text takes it away.
  void set_system(const std::string& text);
  std::optional<std::string> system() const;

  void add(const std::string& role, const std::string& content);
  void add(const ipc::OrderedJson& message) { messages_.push_back(message); }
  size_t size() const { return messages_.size(); }
  void cut(size_t size);                   // drops all messages behind the first so many
  void cut_last(const std::string& role);  // drops the last message of the role and all behind it
  bool ends_with(const std::string& role) const;
  void drop_last();  // REQUIRES: there is one

  // Takes away the oldest question and what answered it, but neither the system message nor the
  // last question. False: there is none to take.
  bool drop_oldest_turn();

  // Takes away all but the system message.
  void clear();

  // {"messages": [...]}; written in one step. Loading takes a bare array as well, and throws
  // kInvalidArgument naming the file and the place without changing anything.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  ipc::OrderedJson messages_ = ipc::OrderedJson::array();
};

}  // namespace tgi
