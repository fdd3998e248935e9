"""The small tokenizers of make_tokenizer_goldens, and the variants of their settings."""
import io
import json
import pathlib
import tempfile

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_texts import make_corpus

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/tokenizer/golden"

LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                  r"\s*[\r\n]+|\s+(?!\S)|\s+")


def train_byte_level(corpus):
    model = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    model.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    model.decoder = decoders.ByteLevel()
    model.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|endoftext|>"])
    model.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("the", single_word=True),
                      AddedToken("\n\n\n", normalized=False)])
    model.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B", special_tokens=[
            ("<|begin_of_text|>", model.token_to_id("<|begin_of_text|>"))])])
    return model


def train_spm_bpe(corpus):
    model = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    model.pre_tokenizer = pre_tokenizers.Metaspace()
    model.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=760, limit_alphabet=120, show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
    written = json.loads(model.to_str())
    special = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    written["added_tokens"] = [dict(id=id, content=content, **special)
                               for id, content in enumerate(["<unk>", "<s>", "</s>"])]
    written["pre_tokenizer"] = None
    written["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    written["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    model = tokenizers.Tokenizer.from_str(json.dumps(written))
    model.add_special_tokens([AddedToken("<|end|>", rstrip=True), AddedToken("<|user|>", lstrip=True, rstrip=True)])
    model.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    return model


# What BERT and its kin have.
BERT_NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                   "lowercase": True}


def train_wordpiece(corpus):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    model = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    model.normalizer = normalizers.BertNormalizer(lowercase=False)
    model.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    model.decoder = decoders.WordPiece()
    model.train_from_iterator(corpus + [line.lower() for line in corpus], trainers.WordPieceTrainer(
        vocab_size=700, limit_alphabet=150, show_progress=False, special_tokens=special))
    model.normalizer = normalizers.BertNormalizer()
    model.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    model.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    model.enable_truncation(20)
    model.enable_padding(length=24, pad_id=0, pad_token="[PAD]")
    return model


# In pairs: what is found and what replaces it. Graphemes of several characters among them, and rules that begin alike.
RULES = [("e\u0301", "\u00e9"), ("q", "k"), ("a\u0323", "\u1ea1"), ("\u0301", "\u00b4"), ("\ufb01", "fi"), ("\u00bd", "1/2"),
         ("\t", " "), ("\n", " "), ("\u00a0", " "), ("\u3000", " "), ("\u200b", ""), ("\x7f", ""), 
         ("\u2460", "1"), ("\u2122", "TM"), ("\u212a", "K"), ("\u0915", "ka"), ("\u0e44", "\u0e44\u0e44"), ("\u4e2d", "\u65e5"),
         ("\u00a9", "(c)"), ("\u1100", "G"), ("\u11a8", "g"), ("\U0001d49c", "A"), ("\U0001f44d", "+1"), ("\r\n", "\n"),
         ("\u0600", "#"), ("\ufeff", ""), ("A\u030a", "\u00c5"), ("\U0001d15e", "x"), ("...", "\u2026")]


def make_charsmap():
    """The charsmap that sentencepiece compiles of RULES: in a model it is field 2 of field 3."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for found, content in RULES:
            file.write("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in (found, content)) + "\n")
        file.flush()
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d"] * 9), model_writer=out, vocab_size=10, minloglevel=2, hard_vocab_limit=False,
            normalization_rule_tsv=file.name)
    return field_of(field_of(out.getvalue(), 3), 2)


def field_of(message, wanted):
    """A field of bytes of a protocol buffer."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift += 7
            at += 1
            if message[at - 1] < 0x80:
                return value, at

    at = 0
    while at < len(message):
        tag, at = varint(at)
        kind = tag & 7
        if kind == 2:
            size, at = varint(at)
            if tag >> 3 == wanted:
                return message[at:at + size]
            at += size
        elif kind == 0:
            _, at = varint(at)
        else:
            at += {1: 8, 5: 4}[kind]
    raise KeyError(wanted)


def train_unigram(corpus):
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    model = tokenizers.Tokenizer(models.Unigram())
    model.normalizer = normalizers.Precompiled(make_charsmap())
    model.pre_tokenizer = pre_tokenizers.Metaspace()
    model.decoder = decoders.Metaspace()
    model.train_from_iterator(corpus, trainers.UnigramTrainer(
        vocab_size=420, show_progress=False, special_tokens=special, unk_token="<unk>"))
    written = json.loads(model.to_str())
    pieces = written["model"]["vocab"]
    for index, piece in enumerate(pieces):  # many ways of equal scores
        if index % 2 == 0:
            piece[1] = round(piece[1] * 2) / 2
    # As byte tokens and one that is there twice.
    pieces += [[f"<0x{byte:02X}>", -20.5] for byte in range(256)] + [["\u2581the", -5.25]]
    model = tokenizers.Tokenizer.from_str(json.dumps(written))
    model.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    model.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return model


def train_sentencepiece(corpus, path, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=out, vocab_size=520, minloglevel=2,
        control_symbols=["[INST]", "[/INST]"], user_defined_symbols=["<tool_call>"], **options)
    path.write_bytes(out.getvalue())


def train_word_level(corpus):
    model = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    model.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    model.train_from_iterator(corpus, trainers.WordLevelTrainer(
        vocab_size=300, show_progress=False, special_tokens=["[UNK]", "[PAD]", "[BOS]", "[EOS]"]))
    model.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("the", single_word=True)])
    model.post_processor = processors.TemplateProcessing(
        single="[BOS] $A [EOS]", pair="[BOS] $A [EOS] $B:1 [EOS]:1", special_tokens=[("[BOS]", 2), ("[EOS]", 3)])
    return model


JSON_MODELS = {"byte_level": train_byte_level, "spm_bpe": train_spm_bpe, "wordpiece": train_wordpiece,
               "unigram": train_unigram, "word_level": train_word_level}


def train_models(names):
    """names: of the folders, or "all"."""
    corpus = make_corpus()
    for name, train in JSON_MODELS.items():
        if name not in names and "all" not in names:
            continue
        (GOLDEN / name).mkdir(parents=True, exist_ok=True)
        (GOLDEN / name / "tokenizer.json").write_text(train(corpus).to_str(), "utf-8")
    for name, options in {
            "sentencepiece_bpe": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                                      remove_extra_whitespaces=False, character_coverage=0.98),
            "sentencepiece_unigram": dict(model_type="unigram", normalization_rule_name="identity",
                                          character_coverage=0.98, hard_vocab_limit=False)}.items():
        if name not in names and "all" not in names:
            continue
        (GOLDEN / name).mkdir(parents=True, exist_ok=True)
        train_sentencepiece(corpus, GOLDEN / name / "tokenizer.model", **options)


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def make_variants():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    gpt2 = dict(byte_level, use_regex=True)
    spaced = dict(gpt2, add_prefix_space=True)
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    patterns = [r"\s+", r"\d{1,3}", r"[a-z&&[^aeiou]]+", r"[^(\s|[.,!?…。，、।۔،])]+", r"\w+", r"\W", r"\b", r"^.", r".$",
                r"x*", r"[\p{Han}\p{Hiragana}]+", r"[[:punct:]]", r"\h+", r"\R", r"(?m:a.b)", r"[^\S\n]+", r"(?i)don'T|[k-s]",
                r"[^\P{L}a-m]+", r"a{,2}b", r"\p{N}{1,3}+", r"[[:^alpha:]]{2,3}?", r"(?<!\p{L})\p{N}+",
                r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t)?"]
    behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    variants = []

    def add(base, model=None, **members):
        variants.append({"base": base, "set": members, "set_model": model or {}})

    for index, pattern in enumerate(patterns):
        for at in range(2):
            add("byte_level", pre_tokenizer={"type": "Sequence", "pretokenizers": [
                split({"Regex": pattern}, behaviors[(index + 3 * at) % 5], at == 1), byte_level]})
    for behavior in behaviors:
        add("byte_level", pre_tokenizer={"type": "Sequence", "pretokenizers": [split({"String": " "}, behavior), spaced]})
        add("byte_level", pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "Punctuation", "behavior": behavior}, gpt2, {"type": "Digits", "individual_digits": behavior > "J"}]})
    for kind in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"]:
        add("byte_level", pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": kind}, spaced]})
        add("spm_bpe", normalizer=None, pre_tokenizer={"type": kind})
    for kind in [{"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "CharDelimiterSplit", "delimiter": "▁"},
                 {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 1}, {"type": "FixedLength", "length": 7}]:
        add("byte_level", pre_tokenizer={"type": "Sequence", "pretokenizers": [kind, spaced]})
        add("spm_bpe", pre_tokenizer=kind)
        add("wordpiece", pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, kind]})
    for kind in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "ByteLevel"]:
        add("byte_level", normalizer={"type": kind})
        add("spm_bpe", normalizer={"type": "Sequence", "normalizers": [{"type": kind}, replace]})
    for left, right in [(True, False), (False, True), (True, True)]:
        add("spm_bpe", normalizer={"type": "Strip", "strip_left": left, "strip_right": right},
            pre_tokenizer=dict(metaspace, prepend_scheme="first"))
    for scheme in ["always", "first", "never"]:
        for cut in [True, False]:
            add("spm_bpe", normalizer=None, pre_tokenizer=dict(metaspace, prepend_scheme=scheme, split=cut),
                decoder=dict(metaspace, prepend_scheme=scheme))
    add("spm_bpe", normalizer={"type": "Replace", "pattern": {"Regex": r"[\s▁]+"}, "content": "▁"}, decoder=None)
    add("spm_bpe", model={"fuse_unk": False, "byte_fallback": False})
    add("spm_bpe", model={"byte_fallback": False})
    add("spm_bpe", model={"unk_token": None, "byte_fallback": False})
    add("spm_bpe", model={"ignore_merges": True})
    add("byte_level", model={"ignore_merges": False, "end_of_word_suffix": "e"})
    roberta = {"trim_offsets": True, "add_prefix_space": True}  # the library takes one with these for RobertaProcessing
    for kind, members in {"RobertaProcessing": roberta, "BertProcessing": {}}.items():
        add("spm_bpe", post_processor={"type": kind, "sep": ["</s>", 2], "cls": ["<s>", 1], **members})
    add_embedding_variants(add, metaspace, gpt2)
    add_decoder_variants(add, metaspace, byte_level)
    return variants


def add_decoder_variants(add, metaspace, byte_level):
    """Decoders in orders that nothing but a file says."""
    fuse, fallback = {"type": "Fuse"}, {"type": "ByteFallback"}
    space = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    long = {"type": "Replace", "pattern": {"Regex": "[aeiou]+s?"}, "content": "_"}
    word_piece = {"type": "WordPiece", "prefix": "t", "cleanup": False}

    def strip(content, start, stop):
        return {"type": "Strip", "content": content, "start": start, "stop": stop}

    for chain in ([fallback, fuse, space], [fuse, space, strip(" ", 2, 0), strip("t", 1, 0)], [fuse, metaspace],
                  [fallback, strip("▁", 1, 0), space], [space, fuse, fallback], [fallback, fallback, space], [strip("e", 0, 1), long, space],
                  [fuse, fuse, word_piece, space], [word_piece, metaspace, fuse], [fallback, long, metaspace, fuse, strip(" ", 3, 0)],
                  [{"type": "BPEDecoder", "suffix": "e"}], [space, {"type": "BPEDecoder", "suffix": "in"}, fallback],
                  [{"type": "BPEDecoder", "suffix": "a"}, fuse, {"type": "BPEDecoder", "suffix": "▁"}], []):
        add("spm_bpe", decoder={"type": "Sequence", "decoders": chain})
    for chain in ([byte_level, {"type": "Replace", "pattern": {"String": " "}, "content": "--"}, strip("-", 1, 0)],
                  [long, byte_level, fallback, fuse], [byte_level, metaspace, word_piece]):
        add("byte_level", decoder={"type": "Sequence", "decoders": chain})
    bpe, cleaned = {"type": "BPEDecoder", "suffix": "er"}, {"type": "WordPiece", "prefix": "t", "cleanup": True}
    word = {"type": "Replace", "pattern": {"String": " the"}, "content": "ee"}
    letters = {"type": "Replace", "pattern": {"String": "ee"}, "content": "e e"}
    sounds = {"type": "CTC", "pad_token": "e", "word_delimiter_token": "\u2581", "cleanup": True}
    # A token's text is known when others have come.
    for chain in ([space, fallback, fuse, strip(" ", 1, 2)], [fuse, strip("e", 0, 3), strip("h", 0, 1), space], [fuse, bpe, space],
                  [fallback, fuse, space, word, letters, strip("e", 0, 1)], [fallback, bpe, fuse], [fallback, word_piece, bpe],
                  [fuse, cleaned, space], [space, fallback, cleaned], [sounds], [dict(sounds, cleanup=False, pad_token="<pad>"), fuse, space],
                  [fallback, fuse, dict(sounds, pad_token="th")], [fuse, dict(sounds, cleanup=False, word_delimiter_token=" ")],
                  [fallback, sounds, space], [strip("e", 0, 1), sounds, word_piece]):
        add("spm_bpe", decoder={"type": "Sequence", "decoders": chain})
    for chain in ([byte_level, strip(" ", 1, 1)], [byte_level, fallback, word, letters], [fallback, byte_level, cleaned],
                  [byte_level, dict(sounds, word_delimiter_token=" th"), bpe]):
        add("byte_level", decoder={"type": "Sequence", "decoders": chain})
    add("wordpiece", decoder={"type": "Sequence", "decoders": [{"type": "WordPiece", "prefix": "##", "cleanup": True}, long, fuse,
                                                               {"type": "Replace", "pattern": {"String": " "}, "content": ""}]})


def add_embedding_variants(add, metaspace, byte_level):
    """What models of embeddings have, and what stands in the way of it."""
    cases = [(clean, chinese, strip, lower) for clean in (True, False) for chinese in (True, False)
             for strip in (None, True, False) for lower in (True, False)]
    for clean, chinese, strip, lower in cases:
        add("wordpiece", normalizer=dict(BERT_NORMALIZER, clean_text=clean, handle_chinese_chars=chinese,
                                         strip_accents=strip, lowercase=lower))
    for limit in (0, 1, 5, 1000):
        add("wordpiece", model={"max_input_chars_per_word": limit})
    for prefix in ("", "t", "####"):
        add("wordpiece", model={"continuing_subword_prefix": prefix}, decoder={
            "type": "WordPiece", "prefix": prefix, "cleanup": prefix == "t"})
    for pre_tokenizer in ({"type": "Whitespace"}, {"type": "WhitespaceSplit"}, metaspace, byte_level, None):
        add("wordpiece", pre_tokenizer=pre_tokenizer)
    add("wordpiece", decoder={"type": "WordPiece", "prefix": "##", "cleanup": False}, post_processor=None)
    for kind, members in {"RobertaProcessing": {"trim_offsets": True, "add_prefix_space": False}, "BertProcessing": {}}.items():
        add("wordpiece", post_processor={"type": kind, "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], **members})
    precompiled = json.loads((GOLDEN / "unigram/tokenizer.json").read_text("utf-8"))["normalizer"]
    split_spaces = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    quotes = {"type": "Replace", "pattern": {"String": "''"}, "content": "\""}
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    for model in ({}, {"byte_fallback": True}):
        add("unigram", model, pre_tokenizer=split_spaces)
        add("unigram", model, pre_tokenizer=None, normalizer=None)
        add("unigram", model, pre_tokenizer=byte_level, decoder=None)
    for scheme in ["always", "first", "never"]:
        for cut in [True, False]:
            add("unigram", pre_tokenizer=dict(metaspace, prepend_scheme=scheme, split=cut),
                decoder=dict(metaspace, prepend_scheme=scheme))
    for pre_tokenizer in ({"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, byte_level, metaspace):
        add("word_level", pre_tokenizer=pre_tokenizer)
    add("word_level", {"unk_token": "the"}, normalizer=None, decoder={"type": "WordPiece", "prefix": "t", "cleanup": True})
    for steps in ([precompiled, spaces], [strip, precompiled, spaces], [{"type": "Nmt"}],
                  [quotes, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, precompiled],
                  [{"type": "NFC"}, BERT_NORMALIZER], [{"type": "Nmt"}, {"type": "NFKC"}, spaces, precompiled]):
        add("unigram", normalizer={"type": "Sequence", "normalizers": steps})
    for unk_id in (0, 40):
        add("unigram", {"unk_id": unk_id})
