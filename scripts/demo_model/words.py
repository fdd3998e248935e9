"""Word lists of the demo text: names, kinds of heroes, things, places. Plain data."""

GIRLS = """Lily Mia Anna Emma Zoe Ella Ruby Rosa Nora Clara Molly Ivy Lucy Sara Maya Nina Luna Eva Alice Amy Bella Daisy
Hazel June Kate Leah Olga Penny Rose Sofia Tina Vera Wendy Yara Zara Mina Lena Kiki Dora Fay Greta Hana Isla Jana Pia""".split()
BOYS = """Tom Ben Max Sam Leo Jack Tim Finn Noah Omar Paul Hugo Ivan Felix Oscar Theo Luca Milo Nico Otto Peter Remy Toby
Victor Will Adam Bruno Carl Dan Eddie Fred George Harry Igor Jim Kofi Lars Marco Ned Ravi Sven Tariq Uri Yusuf Zac""".split()
PET_NAMES = """Pip Momo Bobo Fluffy Rusty Sunny Coco Biscuit Pepper Button Pebble Maple Clover Ginger Nutmeg Waffle Bean
Tinker Whiskers Honey Poppy Buddy Socks Mango Ziggy Dusty Mittens Patch Snow Copper Acorn Berry Cocoa Fern Moss Tango""".split()

ANIMALS = """fox rabbit bear cat dog mouse frog duck owl squirrel turtle hedgehog deer pig goat lamb pony kitten puppy bird
penguin monkey elephant lion tiger otter beaver badger mole crow goose snail bee butterfly ladybug dragon wolf panda koala
giraffe zebra seal whale crab hen donkey cow hamster parrot swan raccoon dinosaur unicorn""".split()
FLYERS = "owl bird crow bee butterfly ladybug dragon parrot swan duck goose".split()
SWIMMERS = "frog duck turtle penguin otter beaver seal whale crab swan goose".split()
PEOPLE = {
    "girl": "f", "boy": "m", "princess": "f", "prince": "m", "king": "m", "queen": "f", "farmer": "m", "baker": "f",
    "knight": "m", "wizard": "m", "witch": "f", "fisherman": "m", "pirate": "m", "captain": "f", "painter": "f",
    "gardener": "m", "shepherd": "f", "giant": "m", "fairy": "f", "sailor": "m", "cook": "f", "robot": "n", "snowman": "m",
    "train": "n", "boat": "n", "cloud": "n", "star": "n", "car": "n", "child": "n", "teacher": "f", "woman": "f", "man": "m",
}
THINGS_THAT_LIVE = "robot train boat cloud star car".split()

WORDS = {
    "adj": "little small kind brave curious happy shy clever young gentle funny cheerful quiet playful friendly busy".split(),
    "color": "red blue green yellow orange purple pink white brown silver golden black".split(),
    "toy": """ball kite doll teddy bear|toy car|toy boat|drum|balloon|puzzle|hat|scarf|book|whistle|spinning top|toy train|
        blanket|wagon|mitten|ribbon|bell|umbrella|basket|paper plane|music box|marble|cup|lamp|jump rope|flute|flag""",
    "food": """apples|berries|cookies|carrots|honey cakes|pancakes|pears|plums|nuts|muffins|sandwiches|strawberries|cherries|
        bread rolls|peanuts|grapes|oranges|peaches|tarts|dumplings""",
    "place": """forest|garden|park|meadow|woods|field|valley|village|town|orchard|jungle|yard|desert|city|farm""",
    "spot": """under the bed|behind the door|in the tall grass|under a big tree|near the pond|behind a bush|in a wooden box|
        beside the old well|under the table|next to the fence|on the top shelf|behind the barn|in an empty bucket|
        under a pile of leaves|near the gate|by the river|between two rocks|in the shed|behind the curtain|on the stairs""",
    "weather": "sunny|warm|bright|windy|cool|cloudy|lovely|cold|quiet|clear",
    "season": "spring|summer|autumn|winter",
    "game": "hide and seek|tag|catch|a guessing game|a jumping game|pirates|a counting game|a singing game|explorers",
    "flower": "sunflower|rose|tulip|pumpkin|tomato plant|daisy|bean plant|apple tree|cherry tree|lily|carrot|strawberry plant",
    "build": """a small boat|a tree house|a sand castle|a kite|a bird house|a wooden bridge|a big tower|a snow fort|
        a little cart|a raft|a swing|a doll house|a paper lantern|a flying machine""",
    "part": "a rope|some nails|a long stick|a piece of cloth|a bucket|some paint|a strong board|some glue|a wheel|a ladder",
    "treasure": """a box of gold coins|an old book full of stories|a shiny silver crown|a bag of sweets|a golden key|
        a tiny music box|a chest full of toys|a sparkling blue stone|a map of the stars|a letter from long ago""",
    "fear": "the dark|thunder|loud noises|deep water|high places|big dogs|spiders|the wind at night|shadows|strangers",
    "sweet": "cake|ice cream|apple pie|hot soup|warm bread|honey|hot chocolate|pancakes|berry jam|pudding",
    "vase": """vase|window|cup|plate|lamp|flower pot|jar of honey|mirror|clock|tea pot|fence|picture frame|wooden chair""",
    "job": """wash the dishes|sweep the floor|feed the hens|water the plants|clean the room|carry the wood|pick the apples|
        fold the clothes|bake the bread|set the table|rake the leaves|collect the eggs""",
    "noise": """a soft cry|a funny sound|a tiny voice|a loud crash|a quiet knock|a strange hum|a gentle song|a little squeak|
        a deep growl|a splash""",
    "gift": """a warm scarf|a shiny shell|a drawing|a paper crown|a basket of berries|a wooden whistle|a bunch of flowers|
        a jar of honey|a red ribbon|a smooth stone|a small bell|a knitted hat""",
    "contest": """the big race|the swimming race|the baking contest|the singing contest|the drawing contest|the jumping contest|
        the snow race|the kite contest|the dance contest""",
    "instrument": "drum|flute|guitar|violin|trumpet|piano|bell|harp|whistle",
    "shape": "a big circle|a heart|a smiling face|a tall house|a flying bird|a long train|a ship|a rainbow|a friendly dragon",
    "adult": "mother|father|grandmother|grandfather|aunt|uncle",
    "wish": """to fly like a bird|to be very tall|to talk with the fish|to have all the sweets in the world|
        to be as strong as a bear|to be invisible|to never go to bed|to turn things into gold|to make it snow in summer""",
    "job_title": "teacher|doctor|baker|pilot|farmer|painter|singer|builder|sailor|gardener",
    "number": "two three four five six seven eight nine ten".split(),
    "helper": """an old turtle|a wise owl|a kind farmer|a friendly bird|a small mouse|a gentle deer|a tall giraffe|
        an old woman|a young boy|a busy bee|a funny monkey|a strong bear|a quiet cat|a happy dog|a clever crow""",
    "feeling": "happy|proud|glad|warm inside|very happy|thankful|full of joy|calm and happy",
}


def _split(value):
    if isinstance(value, list):
        return value
    return [" ".join(w.split()) for w in value.split("|")]


WORDS = {key: _split(value) for key, value in WORDS.items()}
WORDS["toy"] = ["ball", "kite", "doll", "teddy bear"] + WORDS["toy"][1:]

_STARTS = "b br c d dr f fl g gr h j k kl l m n p pr r s sh st t tr v w z".split()
_VOWELS = "a e i o u ai ee oo ea".split()
_ENDS = "n l r m s k t b lo na ra mi to ndo lla ssa ny ko ris bert wyn dor".split()


def made_up_name(rng, wide=False):
    """A name that is in no list, so that the model learns to copy names instead of knowing them all."""
    if wide and rng.random() < 0.6:
        return _free_name(rng)
    name = rng.choice(_STARTS) + rng.choice(_VOWELS)
    if rng.random() < 0.5:
        name += rng.choice("n l r m s d b t v z".split()) + rng.choice(_VOWELS[:5])
    return (name + rng.choice(_ENDS)).capitalize()


def _free_name(rng):
    """Two to four syllables in any order of letters: hard to guess, so it can only be copied."""
    consonants = "b c d f g h j k l m n p q r s t v w x z ch sh th br st tr ph kl gr".split()
    name = rng.choice(consonants) if rng.random() < 0.75 else ""
    for _ in range(rng.choice([1, 2, 2, 3])):
        name += rng.choice("aeiouy") + rng.choice(consonants + ["l", "n", "r", "s", "m"] * 2)
        name += rng.choice(["", "", rng.choice("bdgklmnprst")])
    return (name + rng.choice(["a", "o", "e", "i", "us", "el", "ina", "", ""])).capitalize()
