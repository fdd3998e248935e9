// Models in a bucket of S3 or of a store that speaks its API: s3://BUCKET/PREFIX. Keys come from
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the region from AWS_REGION or
// AWS_DEFAULT_REGION, another store from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or S3_ENDPOINT_URL;
// without keys requests are not signed, which is enough for public buckets. Files of ~/.aws are not
// read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/download/hub_env.h"
#include "cmd/download/source.h"

namespace tgi::download {

// Throws kInvalidArgument for another form of address and for a key without its secret.
std::unique_ptr<Source> open_s3(const std::string& url, const Variables& variables);

// One page of ListObjectsV2. The token of the next one; empty: it is the last. Throws
// kInvalidArgument for what is no such page.
std::string read_s3_page(const std::string& xml,
                         const std::string& prefix,
                         std::vector<RemoteFile>& files);

}  // namespace tgi::download
