// Entities out of the labels of tokens.
#include "engine/vectors/entity_groups.h"

#include "tests/catch.h"

namespace tgi {
namespace {

TEST_CASE("B begins an entity, I of its group goes on with it, and its score is the mean") {
  const std::string text = "Zoë Ünal met Bob in Rome";
  const std::vector<LabelledToken> tokens = {
      {.label = "B-PER", .score = 0.5, .begin = 0, .end = 3},
      {.label = "I-PER", .score = 1.0, .begin = 4, .end = 8},
      {.label = "O", .score = 0.9, .begin = 9, .end = 12},
      {.label = "I-PER", .score = 0.25, .begin = 13, .end = 16},
      {.label = "B-PER", .score = 0.75, .begin = 17, .end = 19},
      {.label = "I-LOC", .score = 0.5, .begin = 20, .end = 24},
  };
  const std::vector<Entity> found = group_entities(tokens, text);
  REQUIRE(found.size() == 4);
  CHECK(found[0] ==
        Entity{.group = "PER", .score = 0.75, .word = "zoë Ünal", .begin = 0, .end = 8});
  CHECK(found[1] == Entity{.group = "PER", .score = 0.25, .word = "bob", .begin = 13, .end = 16});
  CHECK(found[2] == Entity{.group = "PER", .score = 0.75, .word = "in", .begin = 17, .end = 19});
  CHECK(found[3] == Entity{.group = "LOC", .score = 0.5, .word = "rome", .begin = 20, .end = 24});
}

TEST_CASE("E is an entity's last token, and S an entity by itself") {
  const std::vector<LabelledToken> tokens = {
      {.label = "B-X", .score = 1, .begin = 0, .end = 1},
      {.label = "I-X", .score = 0.5, .begin = 1, .end = 2},
      {.label = "E-X", .score = 0.75, .begin = 2, .end = 3},
      {.label = "I-X", .score = 1, .begin = 3, .end = 4},  // begins another, as one was ended
      {.label = "S-X", .score = 1, .begin = 4, .end = 5},
      {.label = "E-Y", .score = 1, .begin = 5, .end = 6},
      {.label = "O", .score = 1, .begin = 6, .end = 7},
  };
  const std::vector<Entity> found = group_entities(tokens, "abcdefg");
  REQUIRE(found.size() == 4);
  CHECK(found[0] == Entity{.group = "X", .score = 0.75, .word = "abc", .begin = 0, .end = 3});
  CHECK(found[1].word == "d");
  CHECK(found[2].word == "e");
  CHECK(found[3] == Entity{.group = "Y", .score = 1, .word = "f", .begin = 5, .end = 6});
}

TEST_CASE("a label without a prefix goes on with an entity of the same label") {
  const std::vector<LabelledToken> tokens = {
      {.label = "NOUN", .score = 1, .begin = 0, .end = 1},
      {.label = "NOUN", .score = 0.5, .begin = 1, .end = 2},
      {.label = "LABEL_0", .score = 1, .begin = 2, .end = 3},
      {.label = "O", .score = 1, .begin = 3, .end = 4},
      {.label = "LABEL_0", .score = 1, .begin = 4, .end = 5},
      {.label = "PER", .score = 1, .begin = 5, .end = 6},
      {.label = "I-PER", .score = 1, .begin = 6, .end = 7},  // the same tag
      {.label = "b-PER", .score = 1, .begin = 7, .end = 8},  // the same group, another tag
  };
  const std::vector<Entity> found = group_entities(tokens, "abcdefgh");
  REQUIRE(found.size() == 5);
  CHECK(found[0] == Entity{.group = "NOUN", .score = 0.75, .word = "ab", .begin = 0, .end = 2});
  CHECK(found[1] == Entity{.group = "LABEL_0", .score = 1, .word = "c", .begin = 2, .end = 3});
  CHECK(found[2].word == "e");
  CHECK(found[3] == Entity{.group = "PER", .score = 1, .word = "fg", .begin = 5, .end = 7});
  CHECK(found[4] == Entity{.group = "PER", .score = 1, .word = "h", .begin = 7, .end = 8});
}

TEST_CASE("labels that are no parts of entities end the one before") {
  const std::vector<LabelledToken> tokens = {
      {.label = "B-X", .score = 1, .begin = 0, .end = 1},
      {.label = "O", .score = 1, .begin = 1, .end = 2},
      {.label = "I-X", .score = 1, .begin = 2, .end = 3},
  };
  CHECK(group_entities(tokens, "abc").size() == 2);
  CHECK(group_entities({}, "abc").empty());
}

}  // namespace
}  // namespace tgi
