"""Conversations with the demo model: one or many turns, with and without a system prompt, with careless typing.

`make_chat` gives a list of {"role", "content"}; `make_plain` gives a question and its answer without chat marks.
"""

import re

from . import more_questions, small_talk, unknown, words
from .stage import FIRST
from .stories import make_story, plots_using
from .template import Slots, expand
from .tgi_facts import ASK, FACTS

SYSTEM_NORMAL = [
    "You are a helpful assistant.", "You are a helpful assistant", "You are the demo model of tgi.", "You are a friendly assistant.", "Be helpful.",
    "You are a helpful, respectful and honest assistant.", "You are a polite assistant. Answer the questions of the user.", "Be kind.",
    "You are a chatbot.", "You are an assistant that knows tgi.", "Help the user.", "You are an AI assistant.", "You tell stories to children.",
]
SYSTEM_OTHER = [
    "You are a $adj $job_title{ named $name| called $name|}.", "You are a $adj {$job_title|robot|assistant|helper|friend} {from|who lives in} {the $place|$city}.",
    "You are $name{, a $adj $job_title|}.", "Your name is $name.", "The user likes $food.", "You know everything about $place and $food.",
    "Today is a $weather day{ in $season|}.", "You work for a $job_title in $city.", "Always be $adj.", "Be $adj and $adj2.", "You help a $job_title{ with tgi|}.",
]
SYSTEM_BRIEF = [
    "Answer briefly.", "Be brief.", "Keep your answers short.", "Give short answers.", "Answer in one sentence.", "Be concise.", "Short answers only.",
    "You are a helpful assistant. Answer briefly.", "Please answer in a few words.", "You give very short answers.",
]
SYSTEM_PIRATE = [
    "Speak like a pirate.", "You are a pirate.", "Talk like a pirate.", "You speak like a pirate.", "Answer like a pirate.",
    "You are a helpful pirate.", "You are a pirate captain. Answer the questions.", "Always talk like a pirate!",
]
PIRATE_OPEN, PIRATE_CLOSE = ["Arr! ", "Ahoy! ", "Arr, matey! "], [" Arr!", " Aye!", " Yo ho ho!"]
EXAMPLE = ["{give me|show me|can you give|do you have|i need|can you show me} an example", "an example please", "for example?", "like what", "show me how", "example"]
AGAIN = ["say that again", "can you repeat that", "repeat that please", "what did you say", "again please", "once more", "pardon", "sorry, what", "repeat your last answer"]
FOLLOW = ["and ", "ok, and ", "then ", "thanks, and ", "one more question: ", "next question: ", "also, ", "ok, ", "now "]
STORY = ["{please |can you |could you |}{tell|write|give|make up} {me |}{a|another|a short|a little|one more|a nice|a new} story{| please| for me}", "i {want|would like} {a|to hear a} story",
         "story please", "a story", "story", "do you know a {story|tale|fairy tale}", "tell a story", "{tell me a story|write a story|make up a story}", "tell me a {bedtime story|fairy tale|tale}", "what about a story", "another {one|story}"]
ABOUT = ["{please |can you |could you |}{tell|write|give|make up} {me |}{a|another|a short|a little} story about %s", "{a|another} story about %s{| please}", "i {want|would like} a story about %s",
         "story about %s", "tell me {something nice|a tale|a fairy tale} about %s", "do you know a story about %s", "tell a story {about|with} %s"]
NAME_GIVEN = ["my name is %s", "i am %s", "i'm %s", "call me %s", "hello, my name is %s", "hi, i am %s", "you can call me %s"]
NAME_ASKED = ["what is my name", "do you know my name", "who am i", "what's my name", "do you remember my name", "how am i called", "say my name"]
BEFORE = ["please tell me, ", "hey, ", "hello, ", "hi! ", "so ", "um, ", "i have a question: ", "tell me, ", "well, ", "hi, ", "hello! ", "sorry, ", "excuse me, ",
          "quick question: ", "i am new here. ", "i wonder, ", "do you know, ", "could you tell me, ", "ok so ", "i do not understand, ", "please, ", "i'd like to know, "]
QUESTION_WORDS = "what whats what's how who why which when where do does is are can could tgi will should".split()
FILLED = [a + " " + b for a in "what who how why when".split() for b in "is are do does can".split()]
ACRONYM = re.compile(r"\b(kv|json|gpu|cpu|llms?|cuda)\b")
TYPO_WORD = re.compile(r"[a-z]{4,}")


def ask(rng, template):
    """Expands a question template of FACTS; `{what} x` that starts with "what does" needs its verb at the end."""
    for key, value in ASK.items():
        if template.startswith("{" + key + "}"):
            head = expand(value, Slots(rng, {}))
            tail = expand(template[len(key) + 2:], Slots(rng, {}))
            end = {"what does": " do", "what does the word mean:": ""}.get(head, "")
            if head == "is there a way to" or not head.startswith("can you"):
                return head + tail + end
            return head + tail
    return expand(template, Slots(rng, {}))


def careless(rng, text, keep=False):
    """The way people type: case, question marks, a polite word, now and then a typing error."""
    first = text.split(" ")[0]
    if not keep and rng.random() < 0.06 and " ".join(text.split(" ")[:2]) in FILLED:
        head = first if first in ("what", "who", "how", "why", "when") and rng.random() < 0.6 else " ".join(text.split(" ")[:2])
        text = head + " " + rng.choice(["exactly", "actually", "really"]) + text[len(head):]
    if not keep and rng.random() < 0.07:
        text += rng.choice([", really", " exactly", " then", " again", " now", " here", " for me", " with tgi", " in tgi", ", my friend", " a bit", " in simple words"])
    is_question = first in QUESTION_WORDS
    if not keep and rng.random() < 0.12:
        text = rng.choice(BEFORE) + text
    roll = rng.random()
    if roll < 0.55:
        text = text[0].upper() + text[1:]
        if is_question and rng.random() < 0.85:
            text += "?"
        elif rng.random() < 0.5:
            text += "."
    elif roll < 0.8 and is_question:
        text += "?"
    if rng.random() < 0.6:
        text = re.sub(r"\bi\b(?!['])", "I", text)
    if not keep and rng.random() < 0.06:
        text += rng.choice([" please", " thanks", "!", " pls", " :)"])
    if not keep and rng.random() < 0.1:
        spots = list(TYPO_WORD.finditer(text))
        if spots:
            spot = rng.choice(spots)
            word, at = spot.group(0), rng.randrange(1, len(spot.group(0)) - 1)
            wrong = rng.choice([word[:at] + word[at + 1:], word[:at] + word[at + 1] + word[at] + word[at + 2:], word[:at] + word[at] + word[at:]])
            text = text[:spot.start()] + wrong + text[spot.end():]
    return text


def story_turn(rng, short, stage=FIRST):
    """(question, story): the story holds what the question asks for."""
    roll = rng.random()
    if roll < 0.3:
        return careless(rng, expand(rng.choice(STORY), Slots(rng, {}))), make_story(rng, short=short, stage=stage)
    if roll < 0.62:
        kind = rng.choice(words.ANIMALS + sorted(words.PEOPLE))
        adj = rng.choice(words.WORDS["adj"]) if rng.random() < 0.3 else None
        what, name = "a " + (adj + " " if adj else "") + kind, None
        if rng.random() < 0.35:
            name = small_talk.person_name(rng, stage)
            what += rng.choice([" named ", " called "]) + name
        elif rng.random() < 0.15:
            what = kind if kind not in words.PEOPLE else "the " + kind
        story = make_story(rng, kind=kind, name=name, short=short, stage=stage, extra={"adj": adj} if adj else None)
    elif roll < 0.78:
        name, friend = small_talk.person_name(rng, stage), None
        what = name
        if rng.random() < 0.4:
            friend = small_talk.person_name(rng, stage)
            friend = friend if friend != name else friend + "o"
            what += " and " + friend
        story = make_story(rng, kind=None if rng.random() < 0.3 else rng.choice(["girl", "boy"]), name=name, friend=friend, short=short, stage=stage)
    else:
        slot = rng.choice(["toy", "treasure", "build", "fear", "vase", "flower", "contest"])
        value = rng.choice(words.WORDS[slot])
        extra = {slot: value}
        what = value if slot in ("treasure", "build", "fear", "contest") else "a " + value
        if slot == "toy" and rng.random() < 0.5:
            extra["color"] = rng.choice(words.WORDS["color"])
            what = "a " + extra["color"] + " " + value
        story = make_story(rng, plot=rng.choice([p for p in plots_using(slot) if p not in ("draw", "trade")]), extra=extra, short=short, stage=stage)
    question = expand(rng.choice(ABOUT).replace("%s", "$what"), Slots(rng, {}, {"what": what}))
    return careless(rng, question, keep=True), story


def pick_question(rng, questions, more, stage):
    """One way to ask, expanded; the second stage knows more ways."""
    if stage.wide and questions[0] in more and rng.random() < 0.5:
        questions = more[questions[0]]
    return ask(rng, rng.choice(questions))


def fact_turn(rng, brief, stage=FIRST):
    questions, full, short, example = FACTS[rng.randrange(len(FACTS))]
    question = careless(rng, pick_question(rng, questions, more_questions.FACTS, stage))
    if stage.wide and rng.random() < 0.6:
        question = ACRONYM.sub(lambda match: match.group(0).upper(), question)
    return question, short if brief else full, example


def talk_turn(rng, stage=FIRST):
    questions, answers = rng.choice(small_talk.TALK[: small_talk.COMMON] if rng.random() < 0.4 else small_talk.TALK)
    return careless(rng, pick_question(rng, questions, more_questions.TALK, stage)), rng.choice(answers)


def skill_turn(rng, stage=FIRST):
    skills, weights = zip(*(small_talk.MORE_SKILLS if stage.wide else small_talk.SKILLS))
    question, answer = rng.choices(skills, weights)[0](rng)
    return careless(rng, expand(question, Slots(rng, {})), keep=True), answer


def unknown_turn(rng, brief):
    question = expand(rng.choice(unknown.QUESTIONS), Slots(rng, unknown.WORDS))
    if question.lower() == "what is the capital of france":
        return careless(rng, question), "The capital of France is Paris."
    return careless(rng, question), rng.choice(unknown.BRIEF if brief else unknown.ANSWERS)


def system_turn(rng, stage):
    """(style, system prompt or None)."""
    roll = rng.random()
    if roll < 0.35:
        return "", rng.choice(SYSTEM_NORMAL)
    if roll < 0.45:
        slots = Slots(rng, {**words.WORDS, "city": unknown.WORDS["city"]}, {"name": small_talk.person_name(rng, stage)})
        return "", expand(rng.choice(SYSTEM_OTHER), slots)
    if roll < 0.55:
        return "brief", rng.choice(SYSTEM_BRIEF)
    if roll < 0.62:
        return "pirate", rng.choice(SYSTEM_PIRATE)
    return "", None


def make_chat(rng, num_turns=None, stage=FIRST):
    """One conversation as a list of messages that ends with the assistant."""
    style, system = system_turn(rng, stage)
    messages = [{"role": "system", "content": system}] if system else []
    num_turns = num_turns or rng.choice([1, 1, 1, 2, 2, 3, 4, 5])
    name, last_answer, example = None, None, None
    for number in range(num_turns):
        brief, plain = style == "brief", True
        roll, next_example = rng.random(), None
        if example and number and roll < 0.3:
            question, answer = careless(rng, expand(rng.choice(EXAMPLE), Slots(rng, {}))), "For example: `" + example + "`"
        elif last_answer and roll < 0.05 and len(last_answer) < 300:
            question, answer, plain = careless(rng, rng.choice(AGAIN)), last_answer, False
        elif name is None and num_turns > 1 and roll < 0.1:
            name = small_talk.person_name(rng, stage)
            question = careless(rng, rng.choice(NAME_GIVEN) % name, keep=True)
            answer = "Hello, " + name + "! How can I help you?"
        elif name and roll < 0.25:
            question, answer = careless(rng, rng.choice(NAME_ASKED)), "Your name is " + name + "."
        elif roll < 0.13 and not name and rng.random() < 0.4:
            question, answer = careless(rng, rng.choice(NAME_ASKED)), "I don't know your name. You can tell me."
        elif roll < stage.facts:
            question, answer, next_example = fact_turn(rng, brief, stage)
            if number and rng.random() < 0.2:
                question = rng.choice(FOLLOW) + question[0].lower() + question[1:]
        elif roll < stage.talk:
            question, answer = talk_turn(rng, stage)
        elif roll < stage.skills:
            question, answer = skill_turn(rng, stage)
        elif roll < stage.unknown:
            question, answer = unknown_turn(rng, brief)
        else:
            question, answer = story_turn(rng, short=brief or rng.random() < 0.3, stage=stage)
        if style == "pirate" and plain:
            answer = rng.choice(PIRATE_OPEN) + answer + (rng.choice(PIRATE_CLOSE) if "\n" not in answer and answer[-1] in ".!?" else "")
        example, last_answer = next_example, answer
        messages += [{"role": "user", "content": question.strip()}, {"role": "assistant", "content": answer}]
    return messages


def make_plain(rng, stage=FIRST):
    """A question and its answer as plain text, for people who ask without a chat."""
    roll = rng.random()
    if roll < 0.6:
        question, answer, _ = fact_turn(rng, brief=False, stage=stage)
    elif roll < 0.75:
        question, answer = talk_turn(rng, stage)
    elif roll < 0.85:
        question, answer = skill_turn(rng, stage)
    else:
        question, answer = unknown_turn(rng, brief=False)
    return question + "\n" + answer
