#include "cmd/models/hub_scan.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "tests/catch.h"
#include "tests/cmd/hub_cache_files.h"
#include "tests/temp_folder.h"

namespace tgi {

namespace fs = std::filesystem;

TEST_CASE("a scan finds every snapshot with its refs and counts a blob once") {
  const TempFolder folder;
  const HubCacheFiles cache(folder.file("hub"));
  CHECK(scan_hub_cache(cache.path()).empty());
  cache.add_two_revisions();
  cache.add("org--tiny", "bbb", "copy.safetensors", "weights-bbb", std::string(300, 'w'));
  cache.add("org--tiny", "bbb", "sub/notes.txt", "notes", "12345");
  cache.add("gpt2", "ccc", "config.json", "c", "{}");
  cache.write(cache.path() + "/datasets--org--d/snapshots/eee/x", "no model");
  const auto found = scan_hub_cache(cache.path());
  REQUIRE(found.size() == 3);
  CHECK(found[0].name() == "gpt2@ccc");
  CHECK(found[1].name() == "org/tiny");
  CHECK(found[1].refs == std::vector<std::string>{"main"});
  CHECK(found[1].files.size() == 4);
  CHECK(found[1].bytes == 2 + 300 + 5);
  CHECK_FALSE(found[1].has_gaps());
  CHECK(found[2].name() == "org/tiny@v1");
  fs::remove(cache.repo("org--tiny") + "/blobs/weights-aaa");
  CHECK(scan_hub_cache(cache.path())[2].has_gaps());
}

TEST_CASE("removing a snapshot leaves what another one needs") {
  const TempFolder folder;
  const HubCacheFiles cache(folder.path());
  cache.add_two_revisions();
  cache.write(cache.repo("org--tiny") + "/.no_exist/bbb/x", "");
  cache.write(cache.repo("org--tiny") + "/trees/bbb.json", "{}");
  cache.write(cache.path() + "/.locks/models--org--tiny/weights-aaa.lock", "");
  CHECK(remove_hub_snapshot(scan_hub_cache(cache.path())[0]) == 300);
  const std::string repo = cache.repo("org--tiny");
  CHECK_FALSE(fs::exists(repo + "/snapshots/bbb"));
  CHECK_FALSE(fs::exists(repo + "/refs/main"));
  CHECK_FALSE(fs::exists(repo + "/blobs/weights-bbb"));
  CHECK_FALSE(fs::exists(repo + "/.no_exist/bbb"));
  CHECK_FALSE(fs::exists(repo + "/trees/bbb.json"));
  CHECK(fs::exists(repo + "/refs/v1"));
  CHECK(fs::exists(repo + "/blobs/config"));
  CHECK(fs::exists(repo + "/snapshots/aaa/model.safetensors"));

  CHECK(remove_hub_snapshot(scan_hub_cache(cache.path())[0]) == 302 + 3);  // with the ref's file
  CHECK_FALSE(fs::exists(repo));
  CHECK_FALSE(fs::exists(cache.path() + "/.locks/models--org--tiny"));
}

TEST_CASE("links that lead out of the cache are removed, what they lead to is not") {
  const TempFolder folder;
  const HubCacheFiles cache(folder.file("hub"));
  cache.write(folder.file("precious"), "mine");
  cache.write(folder.file("files/precious"), "mine");
  cache.add_two_revisions();
  fs::create_symlink(folder.file("precious"), cache.snapshot("org--tiny", "bbb") + "/a");
  fs::create_symlink(folder.file("files"), cache.snapshot("org--tiny", "bbb") + "/b");
  cache.write(cache.repo("org--other") + "/blobs/x", "of another model");
  fs::create_symlink(cache.repo("org--other") + "/blobs/x",
                     cache.snapshot("org--tiny", "bbb") + "/c");
  CHECK(remove_hub_snapshot(scan_hub_cache(cache.path())[0]) == 300);
  remove_hub_snapshot(scan_hub_cache(cache.path())[0]);
  CHECK_FALSE(fs::exists(cache.repo("org--tiny")));
  CHECK(fs::exists(folder.file("precious")));
  CHECK(fs::exists(folder.file("files/precious")));
  CHECK(fs::exists(cache.repo("org--other") + "/blobs/x"));
}

TEST_CASE("a model that is being downloaded is not removed") {
  const TempFolder folder;
  const HubCacheFiles cache(folder.path());
  cache.add_two_revisions();
  const std::string lock = cache.path() + "/.locks/models--org--tiny/weights-aaa.lock";
  cache.write(lock, "");
  UniqueFd held(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(held.get(), LOCK_EX) == 0);
  const HubSnapshot snapshot = scan_hub_cache(cache.path())[0];
  CHECK_THROWS_WITH(remove_hub_snapshot(snapshot), Catch::Contains("is downloading this model"));
  CHECK(fs::exists(snapshot.path + "/model.safetensors"));
  held.reset();
  CHECK(remove_hub_snapshot(snapshot) > 0);
}

}  // namespace tgi
