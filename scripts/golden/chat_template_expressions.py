"""Random expressions that show how the operators of a template bind: long chains with few brackets, in which signs, filters,
tests, calls, subscripts, comparisons and inline ifs stand side by side. Behind tests/chat_template/golden/expressions.json."""

NUMBERS = ["0", "1", "2", "3", "7", "10", "100", "0.5", "2.5", "1e2"]
NUMBER_NAMES = ["n", "zero", "neg", "f", "whole", "items[0]", "items|length", "d.b", "people[0].age", "s.find('o')", "(1 + 2)", "-(n)"]
TEXTS = ["'a'", "'ab'", "'abc'", "''", "'b'", "'é'", "'Z'", "s", "u", "words[1]", "'x' 'y'", "s[0]", "s[1:4]", "'ab' * 2", "n|string"]
LISTS = ["items", "[1, 2]", "[]", "(1, 2)", "words", "[n, f]", "range(3)|list", "items[1:]", "d.values()|list", "'abc'|list"]
ANY = ["yes", "no", "none_value", "nothing", "true", "none", "d", "mixed", "[n]"]
ARITHMETIC = ["+", "-", "*", "/", "//", "%", "**", "*", "/"]
ORDER = ["==", "!=", "<", "<=", ">", ">="]
NUMBER_FILTERS = ["abs", "int", "float", "round", "string|int", "default(1)", "int|abs", "round(1)"]
TEXT_FILTERS = ["upper", "lower", "trim", "replace('a', 'b')", "capitalize", "reverse", "default('x')", "upper|lower"]
TESTS = ["defined", "none", "string", "number", "odd", "even", "divisibleby 2", "divisibleby(3)", "not none", "not defined", "eq 3", "gt 1", "in items",
         "not in items", "lt n", "sameas none", "boolean", "eq s", "ne 'a'", "ge 2"]


def space(r):
    return r.choice([" ", " ", " ", "", "\n"])


def number(r):
    text = r.choice(NUMBERS + NUMBER_NAMES)
    sign = r.choice(["", "", "", "", "-", "- ", "+", "--"])
    tail = "|" + r.choice(NUMBER_FILTERS) if r.random() < 0.2 else ""
    return sign + text + tail


def arithmetic(r, length):
    parts = [number(r)]
    for _ in range(length):
        operator = r.choice(ARITHMETIC)
        # Powers of powers are soon too large for anybody, those with a fraction may be complex. Only constants: jinja2 folds
        # "-2" and writes "(-2 ** n)" into the code it makes, which Python takes for -(2 ** n).
        right = r.choice(["0", "1", "2", "3", "-1", "-2|abs"]) if operator == "**" else number(r)
        parts.append(space(r) + operator + space(r) + right)
    return "".join(parts)


def text(r, length):
    parts = []
    for _ in range(length + 1):
        tail = "|" + r.choice(TEXT_FILTERS) if r.random() < 0.25 else ""
        parts.append(r.choice(TEXTS) + tail if r.random() < 0.75 else arithmetic(r, r.randrange(3)))
    out = parts[0]
    for part in parts[1:]:
        out += space(r) + r.choice(["~", "~", "+"]) + space(r) + part
    return out


def operand(r):
    kind = r.randrange(8)
    if kind < 3:
        return arithmetic(r, r.randrange(3))
    if kind < 5:
        return text(r, r.randrange(2))
    if kind == 5:
        return r.choice(LISTS) + r.choice(["", "", " + [3]", "|first", "|last", "[-1]", "[0]", " * 2", "|length - 1", "|map('string')|join('-')"])
    return r.choice(ANY)


def comparison(r):
    kind = r.randrange(6)
    if kind == 0:
        return f"{operand(r)} {r.choice(['in', 'not in'])} {r.choice(LISTS)}"
    if kind == 1:
        return f"{r.choice(TEXTS)} {r.choice(['in', 'not in'])} {text(r, 0)}"
    if kind == 2:
        return f"{operand(r)} is {r.choice(TESTS)}"
    if kind == 3:
        return f"{text(r, 0)} {r.choice(ORDER)} {text(r, 0)}"
    out = arithmetic(r, r.randrange(2))
    for _ in range(r.randrange(1, 4)):
        out += space(r) + r.choice(ORDER) + space(r) + arithmetic(r, r.randrange(2))
    return out


def logic(r):
    out = r.choice(["", "", "not ", "not not "]) + r.choice([comparison, operand])(r)
    for _ in range(r.randrange(3)):
        out += r.choice([" and ", " or "]) + r.choice(["", "", "not "]) + r.choice([comparison, operand])(r)
    return out


def random_expression(r):
    kind = r.randrange(8)
    if kind < 3:
        return arithmetic(r, r.randrange(1, 6))
    if kind == 3:
        return text(r, r.randrange(1, 4))
    if kind == 4:
        return comparison(r)
    if kind < 7:
        return logic(r)
    last = f" else {operand(r)}" if r.random() < 0.8 else ""
    middle = f" else {operand(r)} if {logic(r)}" if r.random() < 0.3 and last else ""
    return f"{operand(r)} if {logic(r)}{middle}{last}"


def random_expressions(r):
    """One template of one expression."""
    return "{{ " + random_expression(r) + " }}"
