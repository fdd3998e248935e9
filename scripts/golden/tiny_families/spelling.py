"""Spellings of a config.json that several tables want."""


def without(config, *keys):
    return {k: v for k, v in config.items() if k not in keys}


def new_rope(config, **parameters):
    """The spelling of transformers 5: everything about rope in one object, dtype without torch_."""
    out = without(config, "rope_theta", "torch_dtype")
    out["rope_parameters"] = {"rope_theta": config["rope_theta"], **parameters}
    out["dtype"] = config["torch_dtype"]
    return out


def architecture(name, model_type, **changes):
    """A small model in the old spelling: what most families have in common, in sizes that are no powers of two."""
    return dict(
        model_type=model_type, architectures=[name], vocab_size=61, hidden_size=24,
        intermediate_size=38, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, rope_theta=10000.0, tie_word_embeddings=False,
        bos_token_id=1, eos_token_id=2, torch_dtype="bfloat16") | changes


def new_dtype(config):
    return without(config, "torch_dtype") | {"dtype": config["torch_dtype"]}
