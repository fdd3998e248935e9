// Reads one call as it is written, piece by piece. Belongs to one sequence.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dialect/element_values.h"
#include "engine/dialect/entry_scanner.h"
#include "engine/dialect/json_scanner.h"
#include "engine/dialect/read_syntax.h"
#include "engine/dialect/tools.h"

namespace tgi::dialect {

// What a reader knows of a tool.
struct KnownTool {
  struct Parameter {
    std::string name;
    uint8_t types = kAllBits;
  };
  std::string name;
  std::vector<Parameter> parameters;
  uint8_t types_of_others = kAllBits;
  std::shared_ptr<const OrderedJson> schema{};  // (optional) of its arguments

  uint8_t types_of_parameter(std::string_view parameter) const;
};
std::vector<KnownTool> known_tools(const std::vector<Tool>& tools);

// What was written without quotes, as JSON: as one of the types, or else as a text.
std::string json_of_parameter(std::string_view value, uint8_t types);

class CallReader {
 public:
  enum class Outcome : uint8_t { kNeedsMore, kDone, kMalformed };

  // Both must outlive it.
  CallReader(const ReadParts& parts, const std::vector<KnownTool>& tools)
      : parts_(&parts), tools_(&tools) {}

  // `text`: all that was written since the call began; it may only grow. `at_end`: it won't.
  Outcome read(std::string_view text, bool at_end);

  // The name is known and what follows it looks like a call: it can be told.
  bool is_committed() const { return is_committed_; }
  const std::string& name() const { return tool_->name; }  // REQUIRES: is_committed()
  const std::string& number() const { return number_; }    // as written; may be empty
  // JSON, as far as it is known.
  const std::string& arguments() const { return arguments_; }
  size_t num_read() const { return at_; }  // bytes of the text

 private:
  enum class Step : uint8_t { kNext, kNeedsMore, kMalformed };
  enum class Place : uint8_t { kBegin, kKey, kColon, kValue, kAfterValue };

  Step read_part(const ReadPart& part);
  Step read_mark(const ReadPart& part);
  Step read_name();
  Step read_number();
  Step read_id(const ReadPart& part);
  Step read_arguments();
  Step read_object(const CallPart& part);
  Step read_member(const CallPart& part);
  Step read_parameters(const ReadPart& part);
  Step read_parameter_name(const ReadPart& part);
  Step read_parameter_value(const ReadPart& part);
  void add_parameter_text(std::string_view value, bool is_whole);
  Step read_keywords();
  Step read_keyword_name();
  // The comma before it, where others came, the name and the mark behind it. Nothing is taken yet,
  // but where a comma was the last thing: then there is no name. `quote`: (optional) what may stand
  // around a name. `behind` is what follows.
  struct ListName {
    std::optional<std::string> name;
    std::string_view behind;
  };
  Step read_list_name(char middle, char close, std::string_view quote, ListName& to);
  Step read_quoted_name(std::string_view here, char middle, std::string_view quote, ListName& to);
  // The longest name of an argument that the tool knows and that stands at the front of the text
  // with one of the marks behind it, whatever it holds.
  struct KnownName {
    size_t length = std::string_view::npos;  // without the mark; npos: there is none
    const std::string* mark = nullptr;
  };
  Step find_known_name(std::string_view text,
                       std::initializer_list<const std::string*> marks,
                       KnownName& to) const;
  void begin_value(std::string name, std::string_view behind);
  Step read_entries(const ReadPart& part);
  Step read_entry_name(const ReadPart& part);
  Step read_elements(const ReadPart& part);
  Step read_element_name(const ReadPart& part);
  Step read_element_text(const ReadPart& part);
  Step read_element_value(const ReadPart& part);
  Step read_closing_tag(std::string_view tag);

  bool skip_space();  // true: something follows
  std::string_view rest() const { return text_.substr(at_); }
  Step more() const { return at_end_ ? Step::kMalformed : Step::kNeedsMore; }
  const KnownTool* find_tool(std::string_view name) const;
  bool take_tool(std::string_view name);
  void begin_argument(std::string_view name);
  void end_arguments();

  const ReadParts* parts_;
  const std::vector<KnownTool>* tools_;
  size_t index_ = 0;  // of the part
  size_t at_ = 0;
  std::string_view text_;
  bool at_end_ = false;

  const KnownTool* tool_ = nullptr;
  bool is_committed_ = false;
  bool is_malformed_ = false;
  std::string number_;
  std::string arguments_;
  bool has_arguments_ = false;        // something of them
  bool has_other_key_ = false;        // of an object: neither the name's nor the arguments'
  bool has_whole_arguments_ = false;  // of an object
  JsonScanner scanner_;
  Place place_ = Place::kBegin;  // in an object
  std::string key_;              // of a member or an argument
  std::string value_;
  bool in_value_ = false;    // of a parameter, keyword or entry
  bool in_section_ = false;  // of its own
  bool may_be_section_ = false;
  uint8_t value_types_ = 0;  // what it may be
  size_t num_streamed_ = 0;  // of its text
  size_t num_searched_ = 0;  // bytes of it that its end is not in
  PythonScanner python_;
  EntryScanner entry_;
  ElementScanner elements_;
};

}  // namespace tgi::dialect
