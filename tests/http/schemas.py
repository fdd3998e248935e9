"""TGI's OpenAPI document, the HF task schemas and TGI's recorded responses, from the shared data, as validators.

The data lies in $TGI_SHARED_DATA, else ../shared/data beside the repository; tests that need it skip without it.
"""

import json
import os
import pathlib

import jsonschema
import pytest

from gateway import ROOT

DATA = pathlib.Path(os.environ.get("TGI_SHARED_DATA", ROOT.parent / "shared" / "data")) / "http"
TGI_DOCUMENT = DATA / "tgi" / "openapi.json"
SNAPSHOTS = DATA / "tgi" / "snapshots"
TASKS = DATA / "hf-tasks-spec"
needs_data = pytest.mark.skipif(not TGI_DOCUMENT.exists(), reason=f"{DATA} is not there")


def to_json_schema(node):
    """OpenAPI 3.0 says `nullable` beside a type where JSON schema needs a choice; the rest it leaves alone."""
    if isinstance(node, list):
        return [to_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: to_json_schema(value) for key, value in node.items()
           if key not in ("nullable", "discriminator", "example", "default")}
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") is True else out


def _validator(root, reference=None):
    schema = to_json_schema(root)
    if reference:
        schema = {"components": schema["components"], "$ref": reference}
    schema.pop("$id", None)
    schema.pop("$schema", None)
    return jsonschema.Draft202012Validator(schema)


def component(name, document=None):
    """A validator for one of the named schemas of an OpenAPI document; TGI's when none is given."""
    document = document or json.loads(TGI_DOCUMENT.read_text())
    assert name in document["components"]["schemas"], f"the document has no schema {name}"
    return _validator(document, f"#/components/schemas/{name}")


def task(folder, name):
    """A validator for a file of the HF task schemas, such as ("chat-completion", "output")."""
    return _validator(json.loads((TASKS / folder / f"{name}.json").read_text()))


def check(validator, value):
    errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(value)]
    if errors:  # no assert: it would print the whole value
        pytest.fail(f"{errors[:3]} in {json.dumps(value)[:300]}", pytrace=False)
