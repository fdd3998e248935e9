// What a template does with the members of its messages, read from its tree. Values are followed
// by name (set, for, with, macro parameters, attributes of namespaces) and without regard to order
// or scope: enough to tell in which form a template expects a message.
#pragma once

#include <set>
#include <string>

#include "engine/text/jinja/ast.h"

namespace tgi::jinja {

struct MemberUses {
  // It goes through the parts of `content` and looks at their type or text. A template that doesn't
  // takes texts only.
  bool takes_parts = false;
  // The members it compares with none, so that it wants to see a null one.
  std::set<std::string> compared_with_none;
};

MemberUses find_member_uses(const Program& program);

}  // namespace tgi::jinja
