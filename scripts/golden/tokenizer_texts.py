"""The texts of make_tokenizer_goldens: cases of all kinds, and what the small models are trained on."""
import random

NUM_CASES = 500

FRAGMENTS = """Hello world|don't|DON'T we'll I'M they'd've|<|endoftext|>|<|im_start|>user\n|<s>|</s>|<unk>|[INST]
 [/INST]|<|start|>assistant<|channel|>final<|message|>|<tool_call>|<|end|> |  <|user|>  |<|eot_id|>|<0x41>|▁|▁▁a
\t\t|    |\n\n\n|\r\n\r\n| \n |\u00a0|\u3000|\u200b|\u2028|\u0085|\u180e|\x00|\x1b[0m|\x7f
👩‍👩‍👧‍👦|🏳️‍🌈|👍🏽|🇩🇪🇫🇷|e\u0301|a\u0323\u0302|A\u030a|\ufb01|½|①|²|١٢٣|१२३|３|Ⅷ|ǅ|ʰ|ß|İ|ſ|\u212a|'ſ
中文字符|日本語のテキスト|한국어|\u1100\u1161\u11a8|שלום עולם|مرحبا بالعالم|ไทย|हिन्दी|ក្រុង|ⵣ|𝒜𝓑|𐍈
\U00031350|\U0001fae8|\U00010d4e|\U00016d68|\ua7cbA|x|(a+b)*c|http://a.b/c?d=e&f=%20|{"k": [1, 2.5e-3]}
def f(x):\n    return x**2\n|3.14159|1234567890|100,000|2024-01-01|...|!!!???|—–-|“quotes”|«»|$€£¥|\u0301\u0301
\ufffd|\ufeff|\u202e|naïve café|ÀÉÎ|I've|'S|'LL|A'b|_foo_bar|camelCaseWord|HTTPServer|Ünïcödé|''|O'Neil's|the"""
FRAGMENTS = [part for line in FRAGMENTS.split("\n") for part in line.split("|")]
# The separators above stand inside some of them too.
FRAGMENTS += ["<|endoftext|>", "<|im_start|>user\n", "<|end|> ", "  <|user|>  ", "<|eot_id|>", "\n\n\n",
              "\r\n\r\n", " \n ", "def f(x):\n    return x**2\n",
              "<|start|>assistant<|channel|>final<|message|>"]
INVALID = [b"\xff", b"\xc0\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80",
           b"\xc3", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80"]


def random_character(draw):
    kind = draw.random()
    if kind < 0.3:
        return chr(draw.randrange(0x20, 0x7F))
    if kind < 0.4:
        return chr(draw.randrange(0x250))
    if kind < 0.7:
        return chr(draw.randrange(0x250, 0x3100))
    if kind < 0.85:
        return chr(draw.choice([draw.randrange(0x3100, 0xD800), draw.randrange(0xE000, 0xFFFE)]))
    if kind < 0.97:
        return chr(draw.randrange(0x10000, 0x32400))
    return chr(draw.randrange(0xE0000, 0x110000))


def make_case(draw):
    kind = draw.randrange(12)
    if kind == 0:
        return "".join(random_character(draw) for _ in range(draw.randrange(1, 40))).encode()
    if kind == 1:
        unit = draw.choice([" ", "\n", "\t", "\r\n", "a", "A", "0", "é", "中", "!", " a", "\u0301", "👍", "▁", "ab"])
        return (unit * draw.randrange(1, draw.choice([5, 40, 200]))).encode() + draw.choice([b"", b"x", b" x"])
    if kind == 2:
        return b"".join(draw.choice([draw.choice(FRAGMENTS).encode(), draw.choice(INVALID)])
                        for _ in range(draw.randrange(1, 8)))
    if kind == 3:
        return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randrange(1, 120))).encode()
    if kind == 4:
        return "".join(draw.choice(" \n\r\t\u00a0ab1.") for _ in range(draw.randrange(1, 60))).encode()
    between = draw.choice(["", " ", "\n", " "])
    return between.join(draw.choice(FRAGMENTS) if draw.random() < 0.85 else random_character(draw)
                        for _ in range(draw.randrange(1, 12))).encode()


def make_cases(count=NUM_CASES):
    draw = random.Random(20240607)
    return [b"", b" ", b"  a"] + [make_case(draw) for _ in range(count - 3)]


def make_corpus():
    draw = random.Random(1)
    syllables = ["ta", "ri", "no", "the", "s", "ing", "er", "lo", "mi", "ka", "un", "st", "an", "de", "ou", "wh"]
    words = ["".join(draw.choice(syllables) for _ in range(draw.randrange(1, 4))) for _ in range(300)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    lines = []
    for _ in range(1500):
        line = " ".join(draw.choices(words, weights, k=draw.randrange(3, 15)))
        if draw.random() < 0.4:
            line += " " + draw.choice(FRAGMENTS)
        lines.append(line.replace("\x00", "") + draw.choice([".", "!", ",", ""]))
    return lines
