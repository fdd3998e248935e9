"""More ways to ask, for the second stage of training. A key is the first way to ask of an entry in its table."""

FACTS = {
    "{wi} tgi": ["what exactly does tgi do for me", "tgi in one sentence", "so what is tgi all about", "is tgi a program", "what is the tgi command"],
    "{wi} tgid": ["tgid?", "what is tgid there for", "is tgid a server", "what is tgid doing all the time"],
    "{how} stream{| the output| the text| tokens| the answer}": ["can the text appear {slowly|step by step|word by word|while it is made}", "i want to see {the words|each word|tokens} as soon as they {come|are made|are ready}",
        "which flag {streams|is for streaming}", "{how} let the text appear as it is {made|written|generated}", "i want the {text|words|output} to {appear|show up} {at once|while it is written|while the model writes|during generation}"],
    "{how} chat{| with you| with the model| with a model| in the terminal}": ["{how} {get|start|have|open} a {chat|conversation|dialog}{| going| started}", "i want to {chat|talk|have a chat}", "can i {chat|talk} with a model", "which command is for chatting", "where does the chat start"],
    "{how} generate{| text| some text}": ["which command {generates|writes|makes} text", "{how} let the model write", "{how} use a prompt", "what do i type first", "{how} continue my text"],
    "{how} load a {model|new model|different model|big model|real model}": ["load my model", "{how} {try|test} {another|my own|a larger} {model|checkpoint}", "i downloaded a model, {what now|how do i load it}", "{how} tell tgid which model to use"],
    "{how} start {the daemon|tgid|the server}": ["{how} launch {tgid|the daemon|the server}{| with {a|this} model}", "{how} {boot|bring up|get} {tgid|the daemon}{| running}", "launch the daemon", "run the daemon with a model", "{how} start {the daemon|tgid} with {my|this|another} model", "tgid with my model"],
    "{how} stop {the daemon|tgid|the server|tgi|everything}": ["{how} {halt|finish|terminate} {tgid|the daemon}", "the daemon should go away", "{how} make {tgid|the daemon} {stop|end}"],
    "{wi} {the|a} {kv cache|kvcache|kv-cache|key value cache}": ["what is a {kv cache|key value cache}", "the kv cache, what is that", "why {is|do you need|do models need|does tgid need} a kv cache", "why does the model need a kv cache", "what does a kv cache {do|hold|keep}", "what is inside the kv cache", "keys and values, what are they for"],
    "{wi} {the|a} {prefix cache|prefix caching|radix cache|prefix-cache}": ["what is a prefix cache", "the prefix cache, what is that", "why is there a prefix cache", "what does a prefix cache {do|hold|keep}"],
    "{wi} a token": ["{wi} token", "token?", "whats a token", "tokens, what are they", "what is a token exactly", "what do you call a token"],
    "{wi} a block": ["block?", "whats a block", "blocks, what are they", "what is a block of the cache"],
    "{how} get {another|a new|a different} answer": ["answer {once more|again|differently}", "can you {answer|say} {it|this} {differently|in another way|in other words}", "another answer please", "{how} get a different answer to my last question"],
    "who are you": ["are you a model", "who or what are you", "tell me who you are", "who is speaking", "hello, who are you", "what am i talking to"],
    "{what} {--json|the --json flag|json output}": ["which flag gives me {json|machine readable output}", "json please", "does tgi know json"],
    "{what} {--stop|the stop flag|a stop string|stop strings|stop sequences}": ["which flag is for a stop {word|string}", "{how} cut the text at a word"],
    "{what} {--seed|the seed|a seed|seed|the seed flag}": ["{how} get the same {result|story} {twice|again|two times}", "which flag fixes the {randomness|random numbers}"],
    "{what} tgi bench": ["is it fast", "{how} know {the speed|how fast it is}", "what is my speed", "{how} find out how fast my {machine|computer|laptop} is"],
    "{what} tgi ps": ["{how} find out what is loaded", "what models are loaded now", "{how} look at the running requests"],
    "{how} {leave|quit|exit|end|close|stop} the chat": ["i am done, how do i leave", "{how} stop chatting", "how do i end this"],
    "what {commands are there|can i do in the chat|are the chat commands}": ["what can i type in the chat", "which slash commands do you know"],
}
TALK = {
    "how are you{| today| doing| doing today}": ["how are you {doing|feeling|today|now|this morning}{|, my friend|, friend|, model}", "hey, how are you", "how do you feel today", "are you doing well", "how was your day"],
    "{thanks|thank you|thank you very much|thanks a lot|many thanks|thx|ty|thank you so much|cheers|great, thanks|ok thanks|perfect, thank you|cool, thanks|that helps, thanks|thanks for the help}":
        ["{thanks|thank you} {a million|again|so much|for this|mate|very very much|for the story|for that|for everything}", "{big|thousand} thanks", "i thank you", "that was helpful, {thanks|thank you}", "nice, thank you", "thanks, that works"],
    "{goodbye|bye|bye bye|see you|see you later|good night|i have to go|i must go now|farewell|until tomorrow|that is all|see you tomorrow|ciao|good bye|ok bye|so long}":
        ["{ok|well|so}, {goodbye|bye|good night|see you}{| now| then}", "i am leaving now", "time to go", "bye, {model|friend}", "have a nice day"],
}
