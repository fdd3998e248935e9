"""Small children's stories from a seed: heroes with consistent names and pronouns, and a plot with cause and effect."""

from . import plots_one, plots_two, words
from .stage import FIRST
from .template import Slots, expand

PLOTS = {**plots_one.PLOTS, **plots_two.PLOTS}
HAS_OWN_KIND = {"snow": ("snowman",), "fly": tuple(words.FLYERS)}
PRONOUNS = {"f": ("she", "her", "her", "herself"), "m": ("he", "him", "his", "himself"), "n": ("it", "it", "its", "itself")}

INTROS = [
    "Once upon a time, there was a $adj $kind {named|called} $N. ",
    "Once upon a time, there was a $adj $kind. {$His name was|Everyone called $him} $N. ",
    "Once upon a time, a $adj $kind {named|called} $N lived {in|near} $home. ",
    "Once upon a time, in $home, there lived a $adj $kind {named|called} $N. ",
    "Once upon a time, in a {small|far away|quiet} {village|valley|forest|town|land}, there was a $adj $kind {named|called} $N. ",
    "Once upon a time there were two friends, $N and $F. $N was a $adj $kind, and $F was $fa $fkind. ",
    "Once upon a time, $N {lived in $home|was a $adj $kind}. ",
    "Once there was a $adj $kind {named|called} $N. ",
    "There once was a $adj $kind {named|called} $N. ",
    "There was once a $adj and $adj2 $kind {named|called} $N. ",
    "There was a $adj $kind {named|called} $N{ who lived in $home|}. ",
    "One day, a $adj $kind {named|called} $N {woke up early|was playing outside|was sitting in the sun|looked out of the window}. ",
    "One $weather {morning|day}, a $adj $kind {named|called} $N {woke up early|went outside|was very excited}. ",
    "It was a $weather {morning|day|evening} in the $place. A $adj $kind {named|called} $N {was awake|sat under a tree|was singing a song}. ",
    "Long ago, in {a land far away|$home}, there lived a $adj $kind {named|called} $N. ",
    "A long time ago, there was a $adj $kind {named|called} $N. ",
    "In the middle of the $place, there was a house. In it lived a $adj $kind {named|called} $N. ",
    "In $home lived a $adj $kind {named|called} $N. ",
    "Deep in the $place, there lived a $adj $kind {named|called} $N. ",
    "The $adj $kind lived in $home. {$His name was|Everyone called $him} $N. ",
    "A $adj $kind {named|called} $N lived in $home. ",
    "$N was a $adj $kind{ who lived in $home|}. ",
    "$N was a $adj and $adj2 $kind. ",
    "$N {lived in $home|loved to play in the $place|was a happy $kind}. ",
    "$N and $F were {best|good} friends. $N was a $adj $kind, and $F was $fa $fkind. ",
    "Do you know $N? $N is a $adj $kind. Let me tell you what happened one day. ",
    "This is a story about $N, a $adj $kind. ",
    "Every {morning|day}, a $adj $kind {named|called} $N {walked to|went to|looked at} the $place. ",
    "My name is $N, said the $adj $kind. Everyone in the $place knew $him. ",
]
MORE_INTROS = [
    "$N and $F were {best|good|old} friends. ",
    "{$N and $F|The two friends $N and $F} lived in $home. ",
    "One {rainy|cold|dark|stormy|quiet} {morning|night|evening}, $N the $kind {went out|looked up at the sky|could not sleep|was all alone}. ",
    "$N the $kind was {sad|tired|happy|bored} because $he {had nothing to do|was all alone|could not sleep|had a new friend}. ",
    "The {$adj |}$kind was {sad|happy|tired|angry} because $he {had lost something|was all alone|could not sleep|was hungry}. $His name was $N. ",
    "The $kind looked {out of the window|up|around} and saw {something $color|$fa $fkind|a $color $toy}. $His name was $N. ",
    "{Once there|There} was {once |}a $kind who {could not sleep|was always alone|loved to sing|wanted to see the world}. $His name was $N. ",
    "$Weather {days|mornings} made $N happy. $N was a $kind. ",
]
DETAILS = [
    "$He lived with $his $adult. ",
    "$He {liked|loved} {to eat $food|to play $game|$food and $sweet|to look at the stars|to sing|to help others}. ",
    "$He had {$number brothers and sisters|a good friend named $F|a big smile|soft $color $coat|a small $color bag}. ",
    "{All the others liked $him.|Everyone knew $him.|$He was always {smiling|asking questions|in a good mood}.} ",
    "$He wanted to be {a $job_title|brave|strong|a good friend} {one day|when $he was bigger}. ",
    "In $season, $he {liked|loved} to {play in the $place|sit in the sun|look for $food|play $game}. ",
    "", "", "",
]
ENDINGS = [
    "The end.", "And they lived happily ever after.", "It was a day $N would never forget.", "{What a day|What a wonderful day}!",
    "And $N went to sleep with a smile.", "The sun went down, and everyone was happy.", "And that is the story of $N.",
    "\"Good night, $F,\" said $N. \"Good night, $N,\" said $F.", "And they all lived happily.", "And so the day was done.",
]
HOMES = {
    "animal": """a small house in the $place|a cozy den under a hill|a hole under a big tree|a warm nest|the $place|
        a little house by the river|a hollow tree|a tiny house near the $place|the middle of the $place""",
    "person": """a small house near the $place|a little village|a big house with a $color door|a house by the sea|a tall tower|
        a small town|an old house on a hill|a cottage near the $place|a house at the end of the road|a castle on a hill""",
    "thing": "a big city|a small village|a workshop near the $place|a land far away|the $place",
}
HOMES = {k: [" ".join(w.split()) for w in v.split("|")] for k, v in HOMES.items()}
NEXT = [
    "The next {day|week|morning}, {something else happened|there was a new adventure}.", "But that was not all.",
    "Some {days|weeks} later, {there was a new adventure|something new happened}.", "And then, one {day|morning}, there was more.",
]


def pick_hero(rng, kind=None, name=None, stage=FIRST):
    """(kind, gender, name, sort) of a hero; a given kind that is not in the lists is treated as an animal."""
    if kind is None:
        roll = rng.random()
        kind = rng.choice(words.ANIMALS) if roll < 0.55 else rng.choice(["girl", "boy"])
        if roll > 0.82:
            kind = rng.choice(sorted(words.PEOPLE))
    gender = words.PEOPLE.get(kind, rng.choice("fm"))
    if kind == "child":
        gender = rng.choice("fm")
    sort = "thing" if kind in words.THINGS_THAT_LIVE else "person" if kind in words.PEOPLE else "animal"
    if name is None:
        human = words.GIRLS if gender == "f" else words.BOYS
        roll = rng.random()
        if roll < stage.made_up_heroes:
            name = words.made_up_name(rng, stage.wide)
        elif sort == "person" or roll < stage.made_up_heroes + 0.2:
            name = rng.choice(human)
        else:
            name = rng.choice(words.PET_NAMES)
    elif name in words.GIRLS and sort != "thing":
        gender = "f" if kind not in words.PEOPLE or kind == "child" else gender
    elif name in words.BOYS and sort != "thing":
        gender = "m" if kind not in words.PEOPLE or kind == "child" else gender
    return kind, gender, name, sort


def story_slots(rng, kind=None, name=None, friend=None, extra=None, stage=FIRST):
    kind, gender, name, sort = pick_hero(rng, kind, name, stage)
    friend_kind, friend_gender, friend_name, _ = pick_hero(rng, name=friend, stage=stage)
    while friend_name == name or friend_kind == kind:
        friend_kind, friend_gender, friend_name, _ = pick_hero(rng, name=friend, stage=stage)
    he, him, his, himself = PRONOUNS[gender]
    fhe, fhim, fhis, _ = PRONOUNS[friend_gender]
    values = {
        "N": name, "F": friend_name, "kind": kind, "fkind": friend_kind,
        "fa": rng.choice(["a", "a", "a " + rng.choice(words.WORDS["adj"])]),
        "he": he, "him": him, "his": his, "himself": himself, "fhe": fhe, "fhim": fhim, "fhis": fhis,
        "FHe": fhe.capitalize(), "FHis": fhis.capitalize(), "kind2": rng.choice(words.ANIMALS),
        "P": rng.choice(words.PET_NAMES), "G": words.made_up_name(rng), "coat": "fur" if sort == "animal" else "shoes",
    }
    adult = rng.choice(words.WORDS["adult"])
    female = adult in ("mother", "grandmother", "aunt")
    values.update(adult=adult, ahe="she" if female else "he", ahim="her" if female else "him")
    values.update(ahis="her" if female else "his", AHe="She" if female else "He")
    values.update(extra or {})
    slots = Slots(rng, {**words.WORDS, "home": HOMES[sort]}, values)
    values = slots.values
    values["toy_a"] = "a " + slots.get("toy", "")
    return slots


def plots_using(slot):
    return [key for key, plot in PLOTS.items() if any("$" + slot in way for stage in plot for way in stage)]


def make_story(rng, kind=None, name=None, friend=None, extra=None, plot=None, short=False, num_plots=1, stage=FIRST):
    """One story as text. `extra` presets slots, for example {"toy": "drum"}."""
    slots = story_slots(rng, kind, name, friend, extra, stage)
    first, second = rng.sample(DETAILS, 2)
    intro = expand(rng.choice(INTROS) + first + ("" if short else second), slots)
    if rng.random() < 0.08:
        intro = ""  # right into the plot
    elif stage.wide and rng.random() < 0.15:
        intro = expand(rng.choice(MORE_INTROS), slots)
    parts = [intro] if intro else []
    for number in range(num_plots):
        key = plot if plot and number == 0 else rng.choice(sorted(PLOTS))
        if slots.values["kind"] in HAS_OWN_KIND.get(key, ()):
            key = "rain"
        stages = PLOTS[key]
        if short:
            stages = stages[:1] + stages[2:5]
        if number:
            parts.append(expand(rng.choice(NEXT), slots))
            for used in ("place", "toy", "color", "weather", "spot", "spot2", "spot3", "treasure", "food"):
                slots.values.pop(used, None)
            slots.get("toy", "")
        parts += [expand(rng.choice(stage), slots) for stage in stages]
    if rng.random() < 0.45:
        parts.append(expand(rng.choice(ENDINGS), slots))
    breaks = set(rng.sample(range(1, len(parts)), 2)) if rng.random() < 0.4 else set()
    text = ""
    for index, part in enumerate(parts):
        part = " ".join(part.split())
        text += ("\n\n" if index in breaks else " " if index else "") + part
    return text
