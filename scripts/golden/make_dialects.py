#!/usr/bin/env python3
"""Writes tests/dialect/golden/turns.json: how the chat templates of model families write an assistant's turn, with its tool
calls and reasoning. The argument is a folder with chat templates, MODEL.jinja each; they are not part of the repository
(each has its model's licence), and only the short turns are written down.

A turn's text is what the model would generate: the conversation rendered with the assistant's message, less the same
conversation rendered up to it with add_generation_prompt. The mark that ends the turn is kept apart. Where "history" is true
the prompt opens or closes the reasoning and the history does not, so the text begins where the two part: behind a prompt that
opens the reasoning it is an answer only after the reasoning's end.

Needs: jinja2
"""
import argparse
import ast
import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what is trained on, and writes what is inside."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


# A template is of the first dialect that has one of its marks in the template's source. `+` asks for both.
RULES = [
    ("gpt_oss", ["<|channel|>"]),
    ("gemma4", ["<|tool_call>"]),
    ("function_gemma", ["<start_function_call>"]),
    ("deepseek_v32", ["｜DSML｜+function_calls>"]),
    ("deepseek_v41", ["｜DSML｜ calls>"]),
    ("deepseek_v4", ["｜DSML｜"]),
    ("deepseek_v3", ["<｜tool▁calls▁begin｜>+```json"]),
    ("deepseek_v31", ["<｜tool▁calls▁begin｜>"]),
    ("kimi_k2", ["<|tool_calls_section_begin|>"]),
    ("minimax_m2", ["<minimax:tool_call>"]),
    ("minimax_m3", ["]<]minimax[>["]),
    ("minimax_m1", ["<tool_calls>+only_tool", "<tool_calls>+<beginning_of_sentence>"]),
    ("seed_oss", ["<seed:tool_call>"]),
    ("iquest_q1", ["<iquest_tool_call>"]),
    ("glm45", ["<arg_key>"]),
    ("longcat_keys", ["<longcat_arg_key>"]),
    ("longcat", ["<longcat_tool_call>"]),
    ("step3", ["<steptml:invoke"]),
    ("dots", ["<dots_function_call>"]),
    ("olmo3", ["<function_calls>"]),
    ("minicpm5", ["<function name="]),
    ("qwen3_coder", ["<function=+<parameter="]),
    ("functionary", ["<function="]),
    ("functionary_v32", [">>>all"]),
    ("mistral_v11", ["[TOOL_CALLS]+[ARGS]"]),
    ("mistral", ["[TOOL_CALLS]"]),
    ("command_r7b", ["<|START_ACTION|>"]),
    ("command_r_plus", ["Action:+```json"]),
    ("lfm2", ["<|tool_call_start|>", "<|tool_list_start|>"]),
    ("granite", ["<|tool_call|>+<|start_of_role|>"]),
    ("phi4_mini", ["<|tool|>", "functools[+<|end|>"]),
    ("firefunction_v2", ["functools["]),
    ("granite_20b_fc", ["<function_call>+no_function"]),
    ("nemotron_json", ["<TOOLCALL>"]),
    ("apriel", ["<tool_calls>+[BEGIN FINAL RESPONSE]"]),
    ("hunyuan", ["<tool_calls>"]),
    ("hunyuan_v3", ["tool_calls{}"]),
    ("apertus", ["<|tools_prefix|>"]),
    ("solar_open", ["<|tool_call:begin|>"]),
    ("solar_open2", ["<|tool_arg:start|>"]),
    ("k2_horizon", ["<ifm|tool_call>"]),
    ("inkling", ["<|content_invoke_tool_json|>"]),
    ("gigachat35", ["｜GCML｜"]),
    ("gigachat", ["<|function_call|>", "<|role_sep|>"]),
    ("functionary_v22", ["<|recipient|>"]),
    ("kimi_k3", ["<|open|>+<|sep|>"]),
    ("internlm2", ["<|action_start|>"]),
    ("muse_glimmer", ["atem:function_calls", "ATEM"]),
    ("glm4", ["[gMASK]"]),
    ("hermes", ["<tool_call>"]),
    ("pythonic", ["[func_name1("]),
    ("xlam", ["tool_call_name"]),
    ("llama3_json", ['"parameters": dictionary', '"parameters": ']),
]

EOS = {
    "mistral": "</s>", "mistral_v11": "</s>", "deepseek_v3": "<｜end▁of▁sentence｜>", "deepseek_v31": "<｜end▁of▁sentence｜>",
    "deepseek_v32": "<｜end▁of▁sentence｜>", "deepseek_v4": "<｜end▁of▁sentence｜>", "deepseek_v41": "<｜end▁of▁sentence｜>", "llama3_json": "<|eot_id|>", "hermes": "<|im_end|>", "qwen3_coder": "<|im_end|>",
    "seed_oss": "<seed:eos>", "granite": "<|end_of_text|>", "command_r7b": "<|END_OF_TURN_TOKEN|>",
    "command_r_plus": "<|END_OF_TURN_TOKEN|>", "gpt_oss": "<|return|>", "kimi_k2": "<|im_end|>", "minimax_m2": "[e~[",
}

# Marks that end a turn, as the templates write them.
ENDS = ["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "</s>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>",
        "<|end|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<turn|>", "[e~[", "<seed:eos>", "<|user|>",
        "<|observation|>", "<start_function_response>", "<|tool_response>", "<|message_sep|>", "<|end_of_msg|>", "<SPECIAL_12>",
        "<|assistant_end|>", "<eos>", "<|endoftext|>", "[|endofturn|]", "<end_of_sentence>",
        "<｜hy_eos:opensource｜>", "<|role_end|>", "</assistant>", "<sep>", "<|eos|>", "<|stop|>", "<|ifm|im_end|>", "<|content_model_end_sampling|>", "<|START_OF_TURN_TOKEN|>"]

TOOLS = [
    ("get_weather", "The weather of a place.",
     {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer", "description": "How many days."}}, ["city"]),
    ("configure", "Changes settings.",
     {"target": {"type": "object", "description": "What.", "additionalProperties": {"type": "string"}},
      "levels": {"type": "array", "items": {"type": "number"}, "description": "Levels."},
      "ratio": {"type": "number", "description": "A ratio."}, "on": {"type": "boolean", "description": "Whether."},
      "note": {"type": "string", "description": "A note."}, "parent": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A parent."}}, []),
    ("ping", "Says whether the server is alive.", {}, []),
]

QUESTION = "What is the weather in Paris?"
PARIS = {"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}
OSLO = {"name": "get_weather", "arguments": {"city": "Oslo"}}
NESTED = {"name": "configure", "arguments": {
    "target": {"room": "hall", "lamps": [{"id": 7, "dim": True}, {"id": 8, "dim": False}], "owner": None}, "levels": [0.5, 2, -1],
    "ratio": 1.25, "on": True, "note": "plain", "parent": None}}
TEXTS = {"name": "configure", "arguments": {
    "on": False, "note": "He said \"don't\", then:\n\tC:\\temp & <b>42</b> {x}", "parent": "héllo 你好 ✓"}}
PING = {"name": "ping", "arguments": {}}

# (case, content, calls, reasoning)
CASES = [
    ("answer", "It is sunny in Paris.", [], ""),
    ("one call", "", [PARIS], ""),
    ("two calls", "", [PARIS, OSLO], ""),
    ("two tools", "", [OSLO, PING], ""),
    ("content and a call", "Let me look that up.", [PARIS], ""),
    ("nested arguments", "", [NESTED], ""),
    ("texts", "", [TEXTS], ""),
    ("no arguments", "", [PING], ""),
    ("reasoning and an answer", "It is sunny in Paris.", [], "The user asks for the weather."),
    ("reasoning and a call", "", [PARIS], "I need the weather.\n\nSo a call."),
    ("reasoning, content and a call", "Let me look that up.", [PARIS], "I need the weather."),
]

# What rendering may end with where a template does not take a form of a message.
REFUSALS = (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, RecursionError)

REASONING_FIELDS = ["reasoning_content", "reasoning", "thinking"]


def dialect_of(source):
    for name, marks in RULES:
        if any(all(part in source for part in mark.split("+")) for mark in marks):
            return name
    return "generic"


def tools():
    return [{"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": required}}} for name, description, properties, required in TOOLS]


def compile_template(source):
    def refuse(message):
        raise jinja2.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.filters["from_json"] = json.loads
    environment.globals["raise_exception"] = refuse
    # A fixed day keeps the file the same from run to run.
    environment.globals["strftime_now"] = lambda form: datetime.datetime(2025, 1, 2, 3, 4, 5).strftime(form)
    return environment.from_string(source)


def assistant_message(dialect, content, calls, reasoning, field, as_text, absent="empty", blank=False):
    message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = []
    for index, call in enumerate(calls):
        identifier = f"functions.{call['name']}:{index}" if dialect == "kimi_k2" else f"call{index:05d}"
        arguments = json.dumps(call["arguments"], ensure_ascii=False) if as_text else copy.deepcopy(call["arguments"])
        message["tool_calls"].append({"id": identifier, "type": "function", "function": {"name": call["name"], "arguments": arguments}})
    if calls and not content:
        if absent == "null":
            message["content"] = None
        elif absent == "missing":
            del message["content"]
    if reasoning or blank:
        message[field] = reasoning
    return message


class Family:
    def __init__(self, path):
        self.model = path.stem
        self.source = path.read_text(encoding="utf-8")
        self.dialect = dialect_of(self.source)
        self.template = compile_template(self.source)

    def render(self, messages, prompt=False, **more):
        return self.template.render(messages=messages, tools=tools(), add_generation_prompt=prompt, bos_token="<BOS>",
                                    eos_token=EOS.get(self.dialect, "</s>"), functions=json.dumps(tools()),
                                    datetime="2025-01-02", **more)

    def turn(self, message, **more):
        """The generation prompt and the assistant's text with its end."""
        start = [{"role": "user", "content": QUESTION}]
        bare = self.render(start, **more)
        prompt = self.render(start, True, **more)
        whole = self.render(start + [message], **more)
        if whole.startswith(prompt):
            return prompt[len(bare):] if prompt.startswith(bare) else "", whole[len(prompt):], True
        # The prompt opens (or closes) the reasoning and the history does not: the text begins where the two part, but never
        # inside a mark.
        same = 0
        while same < min(len(whole), len(prompt)) and whole[same] == prompt[same]:
            same += 1
        begin = same
        for size in range(1, 12):
            if begin - size >= 0 and whole[begin - size] in "<[":
                begin -= size
                break
            if begin - size < 0 or whole[begin - size] in "\n>]":
                break
        return prompt[len(bare):] if prompt.startswith(bare) else "", whole[begin:], False


def split_end(dialect, text):
    """The text before the mark that ends the turn, and the mark. Harmony's messages end within a turn too."""
    if dialect == "gpt_oss":
        stripped = text.rstrip()
        end = next((end for end in ENDS if stripped.endswith(end)), "")
        return (stripped[:-len(end)], end) if end else (text, "")
    # Some templates always open another turn after the last.
    place, end = min(((text.find(end), end) for end in ENDS if end in text), default=(len(text), ""))
    return text[:place].removeprefix("<|CHATBOT_TOKEN|>").removeprefix("助手：").removeprefix("<|header_start|>assistant<|header_end|>\n\n"), end


def python_calls(text):
    """Whether a list of calls is Python: some templates write texts without quotes, or arguments without commas."""
    begin, end = text.find("["), text.rfind("]")
    try:
        calls = ast.parse(text[begin:end + 1], mode="eval").body
        return isinstance(calls, ast.List) and not any(call.args for call in calls.elts)
    except SyntaxError:
        return False


def complete(text, content, calls, reasoning):
    """Whether a template writes all of a message, and not for example a Python object's form."""
    if content and content not in text:
        return False
    if reasoning and reasoning not in text:
        return False
    if "{'city'" in text or "{'note'" in text or "{'on'" in text and "=" not in text or "{'target'" in text and "=" not in text:
        return False
    position = 0
    for call in calls:
        position = text.find(call["name"], position)
        if position < 0:
            return False
        if any(isinstance(value, str) and value.isalpha() and value not in text[position:] for value in call["arguments"].values()):
            return False
    return True


def quoted(text, calls):
    """Whether the texts among the arguments are Python's, so that they can be told from names."""
    for value in (value for call in calls for value in call["arguments"].values()):
        is_quoted = f'"{value}"' in text or f"'{value}'" in text
        if isinstance(value, str) and value.isalpha() and not is_quoted or not isinstance(value, str) and is_quoted:
            return False
    return True


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def escaped_twice(text):
    return '\\"city\\"' in text or '\\"note\\"' in text


def turns_of(family):
    # Last: some templates refuse a message that says nothing of its reasoning.
    forms = [(as_text, absent, blank) for blank in (False, True) for as_text in (False, True) for absent in ("empty", "null", "missing")]
    field = next((f for f in REASONING_FIELDS if f in family.source and renders(family, f)), None)
    for case, content, calls, reasoning in CASES:
        if reasoning and field is None and "</think>" not in family.source:
            continue
        for as_text, absent, blank in forms:
            message = assistant_message(family.dialect, content, calls, reasoning, field or REASONING_FIELDS[0], as_text, absent, blank)
            try:
                prompt, text, prefix = family.turn(message)
            except REFUSALS:
                continue
            text, end = split_end(family.dialect, text)
            if calls and family.dialect in ("pythonic", "lfm2") and not (python_calls(text) and quoted(text, calls)):
                continue
            # Harmony's template shows what was said beside a call as reasoning; calls that nothing marks can't follow a text.
            is_unmarked = family.dialect in ("llama3_json", "xlam", "pythonic") and "<|python_end|>" not in text
            if calls and content and (family.dialect == "gpt_oss" or is_unmarked):
                continue
            # Nobody can tell the reasoning that a prompt opens from the answer when nothing ends it.
            if prefix and prompt.rstrip().endswith("<think>") and "</think>" not in text:
                continue
            # A template that writes the user's message otherwise once an answer follows says nothing about the answer.
            if QUESTION in text or "&#34;" in text:
                continue
            if not complete(text, content, calls, reasoning) or escaped_twice(text):
                continue
            # Its notation has none: the template leaves them out.
            if family.dialect == "minimax_m3":
                calls = without_nulls(calls)
            turn = {"model": family.model, "dialect": family.dialect, "case": case, "content": content, "reasoning": reasoning,
                    "calls": calls, "prompt": prompt, "text": text, "end": end}
            if not prefix:
                turn["history"] = True
            yield turn
            break


def renders(family, field):
    message = assistant_message(family.dialect, "It is sunny.", [], "Sentinel of thoughts.", field, False)
    try:
        return "Sentinel of thoughts." in family.turn(message)[1]
    except REFUSALS:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("templates", type=pathlib.Path, help="a folder with MODEL.jinja files")
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "tests/dialect/golden/turns.json")
    options = parser.parse_args()
    turns, seen = [], set()
    for path in sorted(options.templates.glob("*.jinja")):
        try:
            family = Family(path)
        except jinja2.TemplateError as error:
            print(f"{path.stem}: no template: {error}", file=sys.stderr)
            continue
        mine = list(turns_of(family))
        if not any(turn["calls"] for turn in mine):
            print(f"{path.stem}: {family.dialect}: renders no calls", file=sys.stderr)
            continue
        for turn in mine:
            # Many models share a syntax to the letter; it is written down once.
            opened = turn["prompt"] if "think" in turn["prompt"].lower() else ""
            key = json.dumps([turn["dialect"], turn["case"], opened, turn["text"], turn["end"]])
            if key not in seen:
                seen.add(key)
                turns.append(turn)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns)
    options.out.write_text(f'{{"tools": {json.dumps(tools())},\n"turns": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
