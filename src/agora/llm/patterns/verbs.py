"""Verbs that state what a thing is like, and not what happens to it for a while."""

from __future__ import annotations

from typing import Final

from agora.llm.patterns.vocabulary import words


def _alternatives(*lines: str) -> str:
    return "|".join(sorted(" ".join(lines).split(), key=len, reverse=True)).replace("~", " ")


PARTICIPLES: Final = _alternatives(
    "born founded cofounded co-founded established created invented discovered developed written co-written "
    "authored composed",
    "performed sung recorded directed produced designed built constructed painted sculpted drawn illustrated "
    "edited translated",
    "published released launched issued introduced located based situated headquartered employed educated trained "
    "married",
    "engaged affiliated associated named owned hosted stored kept deployed signed encrypted hashed maintained "
    "managed led run",
    "licensed powered implemented configured coded programmed made manufactured distributed broadcast aired set "
    "filmed shot",
    "formed organised organized ruled governed coached chaired headed presented narrated played sponsored funded "
    "financed",
    "appointed elected crowned buried assigned connected linked bound mapped exposed generated served derived adapted",
    "inspired followed preceded succeeded replaced provided supported packaged shipped documented compiled tested "
    "monitored",
    "logged cached indexed backed protected secured controlled operated commissioned dedicated classified written~up",
)
"""A thing is one of these by, in, at, with something."""

ADJECTIVES: Final = _alternatives("native due compatible available allergic reachable capable accessible notable")

PREPOSITIONS: Final = "by|in|at|of|with|on|as|to|from|under|into|after|near|within|behind|inside"

_PLACED = "in at on near under within behind inside"
PLURAL: Final = {
    "use": "uses",
    "depend on": "depends on",
    "run on": "runs on",
    "listen on": "listens on",
    "require": "requires",
    "live in": "lives in",
    "speak": "speaks",
    "talk to": "talks to",
    "connect to": "connects to",
    "go through": "goes through",
}
"""What several do, and the form that is the key of it."""

_STATIVE: Final = {
    "lives": "in at with",
    "lived": "in at with",
    "resides": "in at",
    "works": "in at for with as on",
    "worked": "in at for with as on",
    "died": "in at on of",
    "studies": "at",
    "studied": "at in under with",
    "teaches": "at in",
    "taught": "at in",
    "graduated": "from in",
    "belongs": "to",
    "belonged": "to",
    "runs": f"on {_PLACED}",
    "listens": "on at",
    "depends": "on",
    "relies": "on",
    "consists": "of",
    "sits": _PLACED,
    "lies": _PLACED,
    "stands": "for in at",
    "points": "to",
    "resolves": "to",
    "writes": "to in",
    "reads": "from",
    "connects": "to",
    "talks": "to",
    "expires": "on in at after",
    "starts": "at on",
    "ends": "at on",
    "begins": "at on",
    "opens": "at on",
    "closes": "at on",
    "defaults": "to",
    "inherits": "from",
    "derives": "from",
    "specializes": "in",
    "specialises": "in",
    "competes": "in for",
    "serves": "as on in",
    "served": "as in under",
    "plays": "for in as",
    "played": "for in as",
    "originates": "from in",
    "originated": "in from",
    "comes": "from",
    "came": "from",
    "moved": "to",
    "reports": "to",
    "maps": "to",
    "logs": "to",
    "deploys": "to",
    "ships": "with",
    "comes~with": "",
    "speaks": "",
    "uses": "",
    "requires": "",
    "owns": "",
    "wrote": "",
    "composed": "",
    "directed": "",
    "founded": "",
    "invented": "",
    "discovered": "",
    "designed": "",
    "married": "",
    "attended": "",
    "joined": "",
    "contains": "",
    "stores": "",
    "supports": "",
    "implements": "",
    "extends": "",
    "replaces": "",
    "replaced": "",
    "weighs": "",
    "exposes": "",
    "manages": "",
    "leads": "",
    "heads": "",
    "chairs": "",
    "coaches": "",
    "teaches~": "",
    "plays~": "",
    "played~": "",
    "speaks~": "",
    "prefers": "",
    "likes": "",
    "loves": "",
    "hates": "",
    "dislikes": "",
    "enjoys": "",
    "produces": "",
    "publishes": "",
    "develops": "",
    "edits": "",
    "owns~": "",
    "rules": "",
    "governs": "",
    "represented": "",
    "has~a~population": "of",
}
STATIVE: Final = "|".join(
    sorted(
        {
            f"{verb.replace('~', ' ').strip()}{' ' if preposition else ''}{preposition}"
            for verb, prepositions in _STATIVE.items()
            for preposition in (prepositions.split() or [""])
        }
        | PLURAL.keys(),
        key=lambda form: (-len(form), form),
    )
)
"""Verb forms, with the preposition where there is one, longest first."""

EVENTS: Final = words(
    "wrote composed directed founded invented discovered designed married attended joined replaced played"
)
"""What somebody did once: only where what was done has a name."""

SEVERAL: Final = words(
    "speaks uses requires owns contains supports implements manages likes loves hates dislikes enjoys produces",
    "publishes develops wrote composed directed founded invented discovered designed prefers exposes stores",
) | {"depends on", "relies on", "talks to", "connects to", "reads from", "writes to"}
"""Verbs that hold of several things at once."""

BARE: Final = {
    "speaks": "languages",
    "likes": "likes",
    "loves": "likes",
    "enjoys": "likes",
    "hates": "dislikes",
    "dislikes": "dislikes",
    "prefers": "preference",
    "lives in": "home",
    "resides in": "home",
    "works at": "employer",
    "works for": "employer",
    "employed by": "employer",
    "lives at": "home",
    "works as": "occupation",
    "due on": "deadline",
    "due by": "deadline",
    "due in": "deadline",
    "born on": "birthday",
    "married to": "spouse",
    "due": "deadline",
    "owned by": "owner",
    "comes from": "origin",
    "moved to": "home",
}
"""Relations that also have a name of their own, as what people say of themselves gets."""
