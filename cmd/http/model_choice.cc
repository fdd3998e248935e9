#include "cmd/http/model_choice.h"

#include "base/nlohmann_json.h"
#include "cmd/http/adapters.h"
#include "cmd/http/openai_body.h"
#include "ipc/client.h"

namespace tgi::http {
namespace {

// Ends as soon as the member `model` of the outermost object is there.
class ModelMember final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<std::string> take() { return std::move(found_); }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t& text) override {
    if (is_wanted_) found_ = std::move(text);
    return value();
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return depth_ > 0 && open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    is_wanted_ = depth_ == 1 && name == "model";
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool value() const { return !is_wanted_; }
  bool open() { return !is_wanted_ && ++depth_ <= ipc::kMaxJsonDepth; }
  bool close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool is_wanted_ = false;
  std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> model_of_body(std::string_view body) {
  if (body.find("\"model\"") == std::string_view::npos) return std::nullopt;
  ModelMember member;
  (void)nlohmann::json::sax_parse(body, &member);
  return member.take();
}

void choose_served_model(Scope& scope, const std::string& name) {
  if (is_base_model(name, scope.options())) return;
  Service& service = scope.service();
  auto found = service.options.find(name);
  const bool is_adapter = service.adapters != nullptr && service.adapters->knows(name);
  if (found == nullptr && !is_adapter && service.look_again) {
    service.look_again();
    found = service.options.find(name);
  }
  if (found == nullptr) return;
  const bool is_known = found->is_known;
  scope.choose_model(std::move(found));
  if (is_known) return;
  keep_model(scope, std::nullopt);
  if (service.look_again) service.look_again();
  if (auto loaded = service.options.find(name)) scope.choose_model(std::move(loaded));
}

void choose_queried_model(Scope& scope, const std::string& name) {
  if (is_base_model(name, scope.options())) return;
  Service& service = scope.service();
  auto found = service.options.find(name);
  if (found == nullptr) {
    if (service.look_again) service.look_again();
    found = service.options.find(name);
  }
  if (found == nullptr) throw model_not_found(name, scope.options());
  // What only tells of a model loads none.
  scope.choose_model(std::move(found));
}

void keep_model(const Scope& scope, std::optional<double> keep_alive_seconds) {
  const ipc::KeepParams params{.model = scope.daemon_model(),
                               .keep_alive_seconds = keep_alive_seconds};
  try {
    ipc::Client(scope.service().daemon).call(ipc::kKeep, ipc::to_json(params));
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
}

std::shared_ptr<const CurrentOptions::All> models_now(Service& service) {
  if (service.look_again) service.look_again();
  return service.options.all();
}

}  // namespace tgi::http
