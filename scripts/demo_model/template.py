"""A very small text grammar: `{a|b}` picks one branch, `$slot` is filled once per text and then kept.

A slot that has no value yet draws one from the word lists; `$toy2` is another `toy`, never equal to `$toy`.
A leading capital (`$Place`) writes the same value with a capital. Branches may be nested and may be empty.
"""

import re

_CHOICE = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"\$([A-Za-z_]+)([0-9]*)")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!uni|use|eu|one\b)")


class Slots:
    """The values of one text. `words` maps a slot name to the list it draws from."""

    def __init__(self, rng, words, values=None):
        self.rng = rng
        self.words = words
        self.values = dict(values or {})

    def get(self, name, number):
        key = name + number
        if key in self.values:
            return self.values[key]
        lower = name[0].lower() + name[1:]
        if lower != name and (lower + number in self.values or lower in self.words):
            value = self.get(lower, number)
            return value[0].upper() + value[1:]
        taken = [v for k, v in self.values.items() if k.rstrip("0123456789") == name]
        value = self.rng.choice([w for w in self.words[name] if w not in taken])
        self.values[key] = value
        return value


def expand(template, slots):
    """The text of a template: branches first, then slots, then `a` before a vowel becomes `an`."""
    rng = slots.rng
    text = template
    while "{" in text:
        text = _CHOICE.sub(lambda m: rng.choice(m.group(1).split("|")), text)
    while "$" in text:
        text = _SLOT.sub(lambda m: slots.get(m.group(1), m.group(2)), text)
    return _ARTICLE.sub(r"\1n ", text)
