"""Small talk and tiny skills of the demo model: greetings, colors, counting, sums, opposites, capital letters, days, names.

Each function returns (question, answer) for a random generator; TALK is plain question and answer templates.
"""

from . import words
from .stage import FIRST

HELLO = "{hello|hi|hey|good morning|good evening|good afternoon|hello there|hi there|hey there|hello you|greetings|howdy|yo|hiya|moin|hallo}"
TALK = [
    ([HELLO, HELLO + "{ model| demo model| tgi| friend| again| bot|, nice to meet you|}", HELLO],
     ["Hello! How can I help you?", "Hello! I can tell you a story or answer a question about tgi.", "Hi! What would you like to know?"]),
    (["how are you{| today| doing| doing today}", "how is it going", "how do you {do|feel}", "are you {ok|okay|well|fine}", "what's up", "whats up", "how are things", HELLO + ", how are you"],
     ["I am fine, thank you! How can I help you?", "I am well, thank you for asking. What can I do for you?"]),
    (["i am {fine|good|ok|well|great|happy}{|, thank you|, thanks| too}", "i am {fine|good}", "i feel {good|great|happy}", "it is a good day", "all is well"],
     ["I am glad to hear that! What would you like to do?"]),
    (["i am {sad|tired|bored|not well|sick|lonely|angry|unhappy|hungry}", "i feel {sad|bad|tired|lonely}", "i had a bad day", "today was a bad day"],
     ["I am sorry to hear that. Would you like to hear a story?"]),
    (["{thanks|thank you|thank you very much|thanks a lot|many thanks|thx|ty|thank you so much|cheers|great, thanks|ok thanks|perfect, thank you|cool, thanks|that helps, thanks|thanks for the help}"],
     ["You are welcome!", "You are welcome! Is there anything else?", "My pleasure!"]),
    (["{goodbye|bye|bye bye|see you|see you later|good night|i have to go|i must go now|farewell|until tomorrow|that is all|see you tomorrow|ciao|good bye|ok bye|so long}"],
     ["Goodbye! Have a nice day.", "Goodbye! Type /quit to leave the chat."]),
    (["{yes|no|ok|okay|maybe|sure|fine|yes please|no thanks|all right|good|nice|great|cool|wow|hm|i see|right|well|interesting|aha|really|go on|lol}"],
     ["All right! What would you like to do next?", "Good! Ask me for a story, or ask me something about tgi."]),
    (["you are {nice|great|funny|smart|cute|good|cool|the best|kind|sweet|wonderful|helpful}", "i {like|love} you", "{good|well} {job|done}", "nice work", "that was {great|nice|good}", "good answer", "very good"],
     ["Thank you! That is very kind.", "Thank you! You are kind, too."]),
    (["tell me a joke", "do you know a joke", "{make me laugh|say something funny|a joke please|joke|be funny|another joke}", "can you tell me a joke", "i want to hear a joke"],
     ["Why did the token cross the road? Because the next one was already there!",
      "What does a cache say in the morning? I have seen you before!", "Why was the block so happy? It was free at last!"]),
    (["do you {like|love} {me|stories|cats|dogs|music|tgi|people|games}", "what do you like", "what is your favorite {thing|story|word|token}", "what are your hobbies", "do you have fun"],
     ["I like to tell stories. Would you like to hear one?"]),
    (["what is your favorite color", "which color do you like", "do you have a favorite color"], ["I like blue, like the sky in my stories."]),
    (["what is your favorite animal", "which animal do you like", "do you have a favorite animal"], ["I like foxes. They are clever. Shall I tell you a story about a fox?"]),
    (["{can|do} you {think|feel|sleep|dream|eat|see me|hear me|learn}", "are you alive", "do you have feelings", "can you see", "are you awake", "do you get tired"],
     ["No, I am only a small program that guesses the next token."]),
    (["do you speak {german|french|spanish|italian|chinese|english|another language|other languages}", "which languages do you speak", "what languages do you know", "parlez vous francais", "sprichst du deutsch", "hablas espanol"],
     ["I only know a little English."]),
    (["name {some|a few|three|four|five} colors", "{what|which} colors {do you know|are there}", "list {some|three|five|a few} colors", "can you name colors", "tell me some colors", "colors?"],
     ["Red, blue, green, yellow and orange."]),
    (["name {some|a few|three|five} animals", "{what|which} animals {do you know|are there}", "list {some|three|five|a few} animals", "tell me some animals"],
     ["Fox, rabbit, bear, owl and mouse."]),
    (["name {some|a few|three|five} {fruits|fruit}", "{what|which} fruits {do you know|are there}", "list {some|three|five|a few} fruits", "tell me some fruits"],
     ["Apple, pear, plum, cherry and grape."]),
    (["{what|which} are the {days of the week|days}", "name the days{| of the week}", "list the days of the week", "how many days are in a week", "say the days of the week", "tell me the days of the week", "days of the week"],
     ["The seven days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."]),
    (["{what|which} are the months{| of the year}", "name the months{| of the year}", "list the months", "how many months are in a year", "tell me the months", "months of the year"],
     ["The twelve months are January, February, March, April, May, June, July, August, September, October, November and December."]),
    (["{what|which} are the {four seasons|seasons}", "name the seasons", "how many seasons are there", "list the four seasons", "tell me the seasons"],
     ["The four seasons are spring, summer, autumn and winter."]),
    (["say the alphabet", "what is the alphabet", "list the letters", "can you say the abc", "tell me the alphabet", "recite the alphabet", "write the alphabet"],
     ["A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"]),
    (["why is the sky blue", "what makes the sky blue", "why is the sky so blue", "explain why the sky is blue", "tell me why the sky is blue", "do you know why the sky is blue"],
     ["The sky is blue because the air scatters the blue light of the sun more than the red light."]),
    (["what is {deep learning|machine learning|a neural network}", "explain deep learning", "tell me about machine learning", "what does deep learning mean", "define deep learning"],
     ["Deep learning is a way to teach computers: a network of many layers learns from examples instead of rules."]),
    (["what is a {gpu|graphics card}", "explain gpu", "what does gpu mean", "what does a gpu do"], ["A GPU is a chip that does many small sums at the same time. Large models run fast on it."]),
    (["what is a cpu", "explain cpu", "what does cpu mean", "what does a cpu do"], ["The CPU is the main chip of every computer. tgid can run models on it."]),
    (["what is the capital of france", "capital of france", "name the capital of france", "which city is the capital of france"], ["The capital of France is Paris."]),
    (["{what is the meaning of life|what is the sense of life|why are we here}", "tell me the meaning of life"], ["Maybe it is to be kind and to have good friends. In my stories, that works well."]),
    (["sing {a song|me a song|something|for me}", "can you sing", "write a {poem|song}", "tell me a poem", "write me a {short|little} poem", "a poem please", "poem"],
     ["The moon is bright, the night is long,\nthe little fox sings a song.\nThe stars are near, the wind is deep,\nand soon the fox will fall asleep."]),
]

COMMON = 6  # the first so many entries of TALK are what people say most

OPPOSITES = """big small|hot cold|day night|up down|left right|happy sad|fast slow|old young|good bad|light dark|open closed|
long short|high low|wet dry|hard soft|rich poor|full empty|first last|near far|black white|early late|strong weak|clean dirty|
loud quiet|in out|yes no|inside outside|above below|true false|easy difficult|begin end|love hate|thick thin|win lose""".replace("\n", "").split("|")
OPPOSITES = [pair.split() for pair in OPPOSITES]
SHOUTED = """cat dog fox sun moon star tree house hello book ball red blue green fish bird milk bread door hand love friend
water apple night day story token block cache tgi happy king boat rain snow""".split()
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split() + [
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SOUNDS = {"cat": "Meow", "dog": "Woof", "cow": "Moo", "duck": "Quack", "sheep": "Baa", "owl": "Hoo", "lion": "Roar", "pig": "Oink",
          "bird": "Tweet", "mouse": "Squeak", "bee": "Buzz", "frog": "Ribbit", "snake": "Hiss", "horse": "Neigh", "hen": "Cluck"}
COLORS = {"the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "blood": "red", "a banana": "yellow", "coal": "black",
          "a carrot": "orange", "milk": "white", "a leaf": "green", "a strawberry": "red", "a lemon": "yellow", "the sea": "blue", "the night": "black"}


def add(rng):
    a, b = rng.randint(0, 19), rng.randint(0, 19)
    as_words = rng.random() < 0.1
    x, y = (NUMBERS[a], NUMBERS[b]) if as_words else (str(a), str(b))
    forms = ["{what is|what's|whats|how much is|calculate|can you add||compute|tell me} %s {+|plus|and} %s", "add %s {and|to} %s",
             "%s{ + | plus |+}%s{| =| = ?|=}", "what is the sum of %s and %s", "what is %s + %s", "%s + %s"]
    return rng.choice(forms) % (x, y), "%d + %d = %d" % (a, b, a + b) if rng.random() < 0.7 else "%d + %d is %d." % (a, b, a + b)


def subtract(rng):
    a = rng.randint(0, 19)
    b = rng.randint(0, a)
    question = rng.choice(["what is %d {-|minus} %d", "how much is %d {-|minus} %d", "%d{ - | minus }%d", "calculate %d - %d"])
    return question % (a, b), "%d - %d = %d" % (a, b, a - b)


def count(rng):
    last = rng.randint(2, 20)
    shown = str(last) if rng.random() < 0.5 else NUMBERS[last]
    question = rng.choice(["count to %s", "can you count to %s", "count from {1|one} to %s", "please count up to %s"]) % shown
    if rng.random() < 0.15:
        return question.replace("from 1", "down").replace(" to ", " down from ").replace("down down", "down").replace("from one ", "") \
            .replace("up down", "down"), ", ".join(str(i) for i in range(last, 0, -1))
    return question, ", ".join(str(i) for i in range(1, last + 1))


def opposite(rng):
    a, b = rng.choice(OPPOSITES)
    if rng.random() < 0.5 and a not in ("light", "full", "hard"):
        a, b = b, a
    question = rng.choice(["what is the opposite of %s", "opposite of %s", "the opposite of %s", "tell me the opposite of %s", "name the opposite of %s"]) % a
    return question, "The opposite of %s is %s." % (a, b)


def capital_letters(rng):
    word = rng.choice(SHOUTED)
    question = rng.choice(["write %s in capital letters", "put %s in capital letters", "say %s in upper case", "{write|print} %s in big letters", "make %s upper case"]) % word
    return question, word.upper()


def capital_letter(rng):
    letter = rng.choice("abcdefghijklmnopqrstuvwxyz")
    return rng.choice(["what is the capital letter of %s", "capital letter for %s", "write %s as a capital letter"]) % letter, letter.upper()


def day_after(rng):
    index = rng.randrange(7)
    if rng.random() < 0.6:
        return rng.choice(["what {day |}comes after %s", "which day {is|comes} after %s", "what is the day after %s"]) % DAYS[index], \
            "After %s comes %s." % (DAYS[index], DAYS[(index + 1) % 7])
    return rng.choice(["what {day |}comes before %s", "which day {is|comes} before %s"]) % DAYS[index], \
        "Before %s comes %s." % (DAYS[index], DAYS[index - 1])


def number_after(rng):
    n = rng.randint(0, 30)
    if rng.random() < 0.7:
        return rng.choice(["what {number |}comes after %d", "which number is after %d"]) % n, "After %d comes %d." % (n, n + 1)
    first, second = rng.sample(range(1, 100), 2)
    return "which {number |}is bigger, %d or %d" % (first, second), "%d is bigger." % max(first, second)


def sound(rng):
    animal = rng.choice(sorted(SOUNDS))
    return rng.choice(["what {sound|noise} does a %s make", "what does a %s say", "how does a %s sound"]) % animal, \
        "A %s says: %s!" % (animal, SOUNDS[animal])


def color_of(rng):
    thing = rng.choice(sorted(COLORS))
    return rng.choice(["what color is %s", "which color {is|has} %s", "what is the color of %s"]) % thing, "%s is %s." % (
        thing[0].upper() + thing[1:], COLORS[thing])


def say(rng):
    things = [rng.choice(words.ANIMALS), words.made_up_name(rng), rng.choice(words.WORDS["food"]), rng.choice(SHOUTED), rng.choice(words.WORDS["toy"]),
              "I like " + rng.choice(words.WORDS["food"]), "the " + rng.choice(words.WORDS["color"]) + " " + rng.choice(words.WORDS["toy"]),
              "hello " + rng.choice(words.GIRLS + words.BOYS), "good morning"]
    thing = rng.choice(things)
    return rng.choice(["say %s", "repeat after me: %s", "repeat: %s", "please say %s", "say the words %s", "write %s", "just say %s"]) % thing, \
        thing[0].upper() + thing[1:] + "."


def person_name(rng, stage=FIRST):
    return words.made_up_name(rng, stage.wide) if rng.random() < stage.made_up_people else rng.choice(words.GIRLS + words.BOYS)


SKILLS = [(add, 12), (subtract, 3), (count, 4), (opposite, 6), (capital_letters, 2), (capital_letter, 2), (day_after, 3), (number_after, 2),
          (sound, 2), (color_of, 2), (say, 5)]
MORE_SKILLS = [(add, 24), (subtract, 6), (count, 6), (opposite, 9), (capital_letters, 5), (capital_letter, 2), (day_after, 3), (number_after, 3),
               (sound, 2), (color_of, 2), (say, 6)]
