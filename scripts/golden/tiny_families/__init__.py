"""The tables of scripts/golden/make_tiny_checkpoints: what is in each config.json, and how the weights are stored.

A table maps the name of a folder to (config.json, storage, seed). The seed of most is in seeds.json, where
`make_tiny_checkpoints --search` writes the first one whose greedy tokens have no near tie.

storage, all optional:
  dtype                 of the tensors, where config.json does not say it
  shards                number of files
  keep_tied_head        stores lm_head.weight although it is tied
  strip, prefix         taken from, or put before, the names, as old checkpoints of the family have them
  rename                pairs of a part of a name in transformers and what published files have instead
  rotary_tables, causal_masks, gamma_beta   what old checkpoints carry along, and how they call their norms
  extra                 neox_tables, mxfp4, stacked_experts, transposed_experts, unread_parts, no_choice_bias, published_names: what is added or stored otherwise (tiny_weights.py)
  zero_centred_norms    the family computes 1 + weight
  plain_norms           parts of names of those norms that it does not so
  embedding_scale       of the random numbers; small where the head is tied, or each token would repeat itself
  matrix_scale          of the random numbers of the other matrices
  keep_float32          parts of names of tensors that are published in float32
  prompt_lengths        instead of those of make_model_goldens
  attention             of transformers, where its eager one is wrong
  whole_texts           transformers' steps go on from a wrong state: each text is computed anew from its first token
  needs                 the first version of transformers that gets this right
"""

import importlib
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# folder of tests/golden -> its tables, in files beside this one.
FILES = {
    "models": ["first"],
    "families": sorted(path.stem for path in HERE.glob("*.py")
                       if path.stem not in ("__init__", "first", "packed", "spelling")),
    "quantised": ["packed"],
}
# Families that tie when config.json does not say it.
TIED = ("falcon", "bloom", "mpt", "gpt_bigcode", "opt", "gemma3", "mamba", "xglm", "ctrl")


def read_seeds():
    path = HERE / "seeds.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write_seed(name, seed):
    seeds = read_seeds() | {name: seed}
    (HERE / "seeds.json").write_text(json.dumps(dict(sorted(seeds.items())), indent=1) + "\n")


def table(folder):
    out = {}
    seeds = read_seeds()
    for file in FILES[folder]:
        for name, entry in importlib.import_module(f"{__name__}.{file}").MODELS.items():
            if name in out:
                raise ValueError(f"two checkpoints are called {name}")
            if len(entry) == 2:
                config, storage = entry
                tied = config.get("tie_word_embeddings", config["model_type"] in TIED)
                scale = {"embedding_scale": 0.25 if tied else 0.7}
                entry = config, scale | storage, seeds.get(name)
            out[name] = entry
    return out
