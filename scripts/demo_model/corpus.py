"""The tokenizer that is learned from the training text, and the text as token batches.

Everything follows from the seed: pool number i is made with its own generator, so a run can go on from any pool.
"""

import random

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from .documents import BOS, CHAT_TEMPLATE, EOS, SPECIAL, make_document

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
POOL_DOCUMENTS = 2048
LENGTH_STEP = 8


def train_tokenizer(seed, vocab_size):
    """A byte-level BPE tokenizer with the split rule of the Llama 3 family, learned from made-up documents."""
    rng = random.Random("tokenizer %d" % seed)
    texts = ("".join(text for text, _ in make_document(rng)) for _ in range(12000))
    tokenizer = Tokenizer(models.BPE(ignore_merges=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True, normalized=False) for token in SPECIAL]
    tokenizer.add_special_tokens(special)
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=special,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=BOS + " $A",
        pair=BOS + " $A " + BOS + " $B:1",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))],
    )
    return tokenizer


def tokenizer_config(max_length):
    return {
        "add_bos_token": True,
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": EOS,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def encode(tokenizer, pieces, max_length):
    """(input ids, targets) of one document, cut to max_length; -100 marks a target that is not learned."""
    ids, learned = [tokenizer.token_to_id(BOS)], [False]
    for text, is_learned in pieces:
        part = tokenizer.encode(text, add_special_tokens=False).ids
        ids += part
        learned += [is_learned] * len(part)
    ids, learned = ids[: max_length + 1], learned[: max_length + 1]
    return ids[:-1], [t if keep else -100 for t, keep in zip(ids[1:], learned[1:])]


def pool_batches(tokenizer, seed, index, stage, batch_tokens, max_length):
    """The micro-batches of pool `index`: documents of like length together, in a random order.

    Lengths are rounded up and the number of rows follows from the length, so that only few shapes occur.
    """
    rng = random.Random("pool %d %d" % (seed, index))
    documents = [encode(tokenizer, make_document(rng, stage), max_length) for _ in range(POOL_DOCUMENTS)]
    documents.sort(key=lambda document: -len(document[0]))
    batches = []
    while documents:
        length = -(-len(documents[0][0]) // LENGTH_STEP) * LENGTH_STEP
        rows = max(1, batch_tokens // length)
        batches.append(pad(documents[:rows], rows, length))
        documents = documents[rows:]
    rng.shuffle(batches)
    return batches


def pad(documents, rows, length):
    token_ids = torch.zeros(rows, length, dtype=torch.long)
    targets = torch.full((rows, length), -100, dtype=torch.long)
    for row, (ids, wanted) in enumerate(documents):
        token_ids[row, : len(ids)] = torch.tensor(ids)
        targets[row, : len(wanted)] = torch.tensor(wanted)
    return token_ids, targets
