"""The two stages of training. The first is mostly plain stories and common questions; the second has more of what is hard
to learn: names that are in no list, sums, other ways to ask. Plain numbers: the shares of each kind of text.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    story_documents: float  # share of documents that are stories
    plain_documents: float  # ... or a question with its answer without chat marks (as a running sum)
    facts: float  # share of chat turns about tgi; the next three are running sums, the rest are stories
    talk: float
    skills: float
    unknown: float
    made_up_heroes: float  # share of heroes with a name that is in no list
    made_up_people: float
    wide: bool  # more ways to ask, more kinds of names


FIRST = Stage(0.36, 0.42, 0.60, 0.71, 0.82, 0.90, 0.3, 0.4, False)
SECOND = Stage(0.24, 0.32, 0.50, 0.61, 0.86, 0.94, 0.6, 0.7, True)
