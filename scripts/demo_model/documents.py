"""The documents of the training text: a story, a plain question with its answer, or a conversation, each from a seed.

Plain Python, nothing to install. The chat template is here too, because training must write chats just as it does.
"""

from .chats import make_chat, make_plain
from .stage import FIRST
from .stories import make_story

BOS, EOS, END, SYSTEM, USER, ASSISTANT = "<|bos|>", "<|eos|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"
SPECIAL = [BOS, EOS, END, SYSTEM, USER, ASSISTANT]
MARKS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\n' + message['content'] | trim + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)


def make_document(rng, stage=FIRST):
    """A list of (text, is_learned) pieces; the first token of a document, the bos, is not in it."""
    roll = rng.random()
    if roll < stage.story_documents:
        story = make_story(rng, num_plots=rng.choice([1] * 12 + [2, 3]), stage=stage) + EOS
        # A prompt may end anywhere, also in the middle of what would be one token.
        cut = rng.randint(1, 80) if rng.random() < 0.08 else 0
        return [(story[:cut], True), (story[cut:], True)]
    if roll < stage.plain_documents:
        question, answer = make_plain(rng, stage).split("\n", 1)
        if rng.random() < 0.3:
            return [(question + "\n", False), (answer + EOS, True)]
        return [(question, False), ("\n", True), (answer + EOS, True)]
    if roll < 0.96:
        return chat_pieces(make_chat(rng, stage=stage))
    return chat_pieces(make_chat(rng, num_turns=rng.randint(6, 26), stage=stage))


def chat_pieces(messages):
    """The same text as CHAT_TEMPLATE gives, cut where learning starts and stops."""
    pieces = []
    for message in messages:
        head, body = MARKS[message["role"]] + "\n", message["content"].strip() + END
        if message["role"] == "assistant":
            pieces += [(head, False), (body, True), ("\n", False)]
        else:
            pieces.append((head + body + "\n", False))
    return pieces
