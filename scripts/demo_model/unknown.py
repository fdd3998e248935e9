"""Questions that the demo model can not answer, in many shapes, so that "I don't know that" is what it says by default."""

ANSWERS = [
    "I don't know that. I am only a small demo model. Ask me for a story, or ask me something about tgi.",
    "I am only a small demo model; I don't know that. Try a bigger model with `tgi load PATH`.",
    "Sorry, I don't know that. I am only a toy. I can tell a story or answer questions about tgi.",
]
BRIEF = ["I don't know that.", "Sorry, I don't know."]

WORDS = {
    "country": """Germany|Italy|Spain|Japan|China|India|Brazil|Canada|Mexico|Egypt|Kenya|Norway|Sweden|Poland|Greece|Turkey|Russia|
        Australia|Chile|Peru|Portugal|England|Ireland|Finland|America|the United States|Africa|Europe|Cuba|Iran|Korea|Vietnam""",
    "city": "Berlin|London|Rome|Paris|New York|Tokyo|Madrid|Moscow|Vienna|Cairo|Delhi|Sydney|Boston|Chicago|Oslo|Athens|Lima|Hamburg",
    "person": """Einstein|Napoleon|Shakespeare|Mozart|Newton|Darwin|Cleopatra|Gandhi|Picasso|Beethoven|Plato|Caesar|Lincoln|Marie Curie|
        Elvis|Michael Jackson|Obama|the president|the king of England|the pope|Elon Musk|Bill Gates|Linus Torvalds|Ada Lovelace|Alan Turing""",
    "science": """gravity|electricity|photosynthesis|a black hole|the moon|quantum physics|an atom|DNA|evolution|a volcano|magnetism|
        an earthquake|the ozone layer|the speed of light|a prime number|pi|algebra|the big bang|a vaccine|bacteria|oxygen|inflation|
        democracy|philosophy|economics|a blockchain|bitcoin|a virus|the French revolution|the second world war|the Roman empire|chess|
        football|basketball|a sonnet|jazz|opera|yoga|a recession|love|happiness|time|consciousness|the internet|Linux|Docker|Kubernetes|
        recursion|a compiler|a pointer|a database|an operating system|HTML|blood pressure|a heart attack|cancer|chocolate|coffee|beer""",
    "verb": """cook rice|bake a cake|fix a car|learn piano|lose weight|make money|write a book|tie a tie|paint a wall|buy a house|grow tomatoes|
        play chess|speak French|get rich|repair my phone|clean a window|catch a fish|find a job|start a company|sleep better|run faster|
        make coffee|build a website|install Linux|write a letter|file my taxes|fly a plane|sell my car|train a dog|draw a horse|make pizza""",
    "code": """a Python function|a C++ program|some Java code|a shell script|a SQL query|a web page|a regular expression|a sorting algorithm|
        a Rust program|a game in Python|a JavaScript function|hello world in C|an essay|a business letter|an email to my boss|a report""",
    "purpose": "sorts a list|reads a file|adds numbers|finds primes|prints a table|opens a window|reverses a string|talks to a server|",
    "phrase": """good morning|I love you|the cat is black|where is the station|how much is this|thank you|see you tomorrow|I am hungry|
        the weather is nice|my name is John|the house is big|please help me""",
    "language": "French|German|Spanish|Italian|Chinese|Japanese|Russian|Latin|Arabic|Dutch|Polish|Turkish|Greek|Hindi",
    "thing": """the tallest mountain|the longest river|the fastest car|the oldest tree|the biggest city|the smallest country|the deepest sea|
        the best movie|the best phone|the cheapest flight|the richest man|the largest planet|the heaviest animal|the best book|
        the nearest star|the hottest place|the best restaurant|the most popular song""",
    "event": """the moon landing|the last world cup|the second world war|the first computer|the Olympic games|the election|the Titanic|
        the French revolution|the first airplane|the telephone|the light bulb|the printing press|the Eiffel tower|the pyramids""",
    "topic": """politics|sports|history|music|movies|cars|money|the stock market|religion|space|planets|dinosaurs in history|art|fashion|
        cooking|health|medicine|law|biology|chemistry|physics|geography|the news|philosophy|travel|computers|video games""",
    "when": "today|tomorrow|now|this week|next week|on Sunday|tonight|yesterday|right now",
    "big": "123|457|87|999|64|250|77|1000|345|56|48|91|38|72",
}
WORDS = {key: [" ".join(w.split()) for w in value.split("|")] for key, value in WORDS.items()}

QUESTIONS = [
    "what is the capital of {$country|$country|the world}", "who is the {president|king|leader} of $country", "where is {$country|$city}",
    "how many people live in {$country|$city}", "what language do they speak in $country", "how far is {$city|the moon|the sun}",
    "who {is|was} $person", "when {was|did} $person {born|die|live}", "tell me about {$person|$country|$city|$topic}", "what did $person do",
    "what is $science", "explain $science{| to me| simply| in detail}", "how does $science work", "why is $science important", "what causes $science",
    "tell me about $science", "define $science", "how {do i|can i|to} $verb", "how do you $verb", "what is the best way to $verb", "teach me to $verb", "help me $verb",
    "write $code{| that $purpose}", "can you write $code{| that $purpose}", "write me $code", "please write $code", "give me $code",
    "translate {$phrase|'$phrase'} {to|into} $language", "how do you say $phrase in $language", "what is $phrase in $language",
    "what is $thing{| in the world| in $country}", "where is $thing", "which is $thing", "who {invented|made|discovered|built} $event", "when was $event", "who won $event",
    "what happened {in 1969|in 1945|in 2010|yesterday|in $country|to $person}", "what do you think about $topic", "tell me something about $topic", "what are the news {$when|about $topic}",
    "what is the weather{| like| $when| in $city}", "will it rain $when", "what time is it{| in $city}", "what {day|date} is it $when", "how old {am i|is $person|is the earth}",
    "how much {does $code cost|is a house|money does $person have|is a dollar in euro}", "what should i {eat|wear|do|read|watch|buy} $when", "what is {$big times $big|$big divided by $big|the square root of $big|$big * $big|$big + $big}",
    "$big {* |/ }$big", "is {god real|the earth flat|$person alive|$city big|$country rich|$science real|water wet}", "why {do cats purr|do birds fly|do we sleep|is water wet|is the sea salty|do leaves fall|do we dream|is grass green|do people lie|did $person die|is $country cold}",
    "how many {legs does a spider have|planets are there|bones do we have|teeth does a shark have|stars are there|hours are in a year|eggs are in a cake}",
    "can you {drive a car|play chess|see the picture|call my mother|order a pizza|book a flight|send an email|search the web|open a file|read my mail|draw a picture}",
    "recommend {a book|a movie|a song|a restaurant in $city|a game|a gift}", "what is my {ip address|password|age|favorite color|dog's name|birthday|address}", "give me {a recipe|advice|a plan|ten ideas|five facts about $topic|a list of $topic}",
    "summarize {this text|the book|the news|$event|the bible}", "solve {x + 3 = 7|this equation|this puzzle|the riddle}", "where can i {buy coffee|find $topic|eat in $city|park my car}", "what does {$phrase|serendipity|entropy|carpe diem|ubiquitous|zeitgeist} mean",
    "should i {buy a car|marry|learn $language|go to $city|use Linux|eat $science}", "compare {$country and $city|$person and Bach|cats and dogs|Java and C}", "what are the {benefits|dangers|laws|rules|parts} of $science", "list {the planets|all kings of $country|the bones of the body|the states of America|the elements}",
    "who wrote {the bible|Hamlet|Faust|the Odyssey|Harry Potter|this song}", "who will win {the election|the game $when|the world cup}", "what is {linux|windows|ubuntu|python|git|github|vim|chatgpt|pytorch|numpy|a transformer|attention|an api|http|rust|java|bash|sql}",
    "asdf", "blah blah", "qwerty", "xyz", "lorem ipsum", "foo bar", "test", "testing 1 2 3", "1234", "???", "hjkl", "sdfg kjh",
    "I {live in $city|come from $country|like $topic|work as a teacher|have a dog|have two cats|want to $verb|am $big years old}",
]
