"""What the name of a tool says: that a call only reads, or that it may change something.

The words were chosen by the names and descriptions of some 7,400 real tools. Whoever names a tool is free to lie.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


ASKING = _words("describe fetch find get grep inspect lookup read retrieve")
"""Verbs that ask for something. Only in this form: `listing` and `reads` are things as often as not."""

SHOWING = _words("browse count list peek preview search show view")
"""Verbs that ask, and names of things too: `list_archive` may archive a list."""

CHECKED = _words("availability available balance compatibility exists health ownership status")
"""What `check` looks at when it does nothing else."""

STORES = _words(
    "aql bigquery cassandra clickhouse cypher data database databases datastore db dbs duckdb dynamo dynamodb",
    "elasticsearch gql graphql influx kusto mariadb mongo mongodb mssql mysql neo nosql oracle pg postgres postgresql",
    "raw redis redshift snowflake sparql sql sqlite statement string table tables text warehouse",
)
"""Beside `query` they say that the call runs what it is given, in a language that can write too."""

WRITING = _words(
    "abort accept acknowledge acquire activate add adjust allocate amend annotate append apply approve arm assign",
    "associate attach authenticate authorize bash begin bind bypass cancel checkin checkout chmod chown cleanup clear",
    "click cmd combine compile compose compress configure confirm connect consume convert cp craft create customize",
    "cut deactivate deallocate decline decommission decrement decrypt dedupe delegate delete demote deploy deprecate",
    "deregister destroy detach disable disarm disassociate discard disconnect dismiss dispose downgrade drag",
    "duplicate edit eject elevate emit emulate enable encrypt enforce enqueue enrich enrol enroll ensure erase",
    "escalate eval evaluate evict exec execute expire expunge extend finalize finish flush force forget freeze",
    "generate give grant halt handle hire ignore impersonate increment ingest init initialise initialize initiate",
    "inject insert instantiate interrupt invalidate invoke join kick kill launch leave liquidate login logout make",
    "manage manipulate maximize migrate minimize mkdir modify mount mutate mutation mute mv navigate notify obtain",
    "onboard operate orchestrate overwrite paste pause perform persist poke populate powershell prepare prioritize",
    "proceed promote provision prune publish purge put quarantine quit reactivate reassign rebalance rebase reboot",
    "rebuild recalculate recover recreate redact redeem redeploy redo refactor refill refresh regenerate register",
    "reindex reinstall reject reload relocate remediate remind remove rename renew reopen reorder repair replace",
    "replicate repost rerun reschedule resend reset resize resolve respond restart restore restrict resync retire",
    "retry revert revoke rewrite rm rmdir rollback rotate sanitize save scaffold scrape scroll seed sell send set",
    "shell shorten shutdown sign simulate snooze solve spawn squash stash submit subscribe sudo suspend synchronize",
    "take terminate toggle transact transform translate trash truncate tune turn unarchive unassign unban unbind",
    "unblock uncheck undelete undo unenroll unfavorite unfollow unfreeze ungroup unhide unignore uninstall unlink",
    "unlock unload unmark unmount unmute unpack unpause unpin unpublish unregister unset unshare unstake unstar",
    "unsubscribe untag untrash unwrap unzip update upgrade upsert vacuum verify void wait wake whitelist wipe withdraw",
    "wrap write yank zap",
)
"""Verbs that change something, or may, or that do not tell what is done, wherever they stand."""

EITHER = _words(
    "airdrop alert answer archive attack audit backup ban batch benchmark bet bid block book bookmark boot branch",
    "broadcast build burn buy cache call capture change charge claim clean clone close collapse comment commit",
    "complete contact copy crawl credit debit debug deposit design dispatch download draft draw drop dump email",
    "embed end exchange export favorite favourite feed fill fire fix flag follow fork format forward fund hang hide",
    "hold hook import index install invite invoice issue label lend like link load lock log loop lower mail mark",
    "match merge message mint mock monitor move new offer open optimize order pair park partition patch pay pin",
    "ping plan play plot post power press prime print process prompt pull purchase push queue quote raise react",
    "record redirect refund release rent reply report request reserve restock resume return retweet review reward",
    "roll route run sample scale scan schedule screenshot script select setup share shift ship sleep snapshot spend",
    "split stack stage stake star start stop store stream swap switch sync tag target test tip touch track trade",
    "train transfer transition trigger trim tweet type upload use vote warm watch zip",
)
"""Things, where they follow a verb that asks (`get_post`); else verbs that write (`post_get`, `get_and_post`)."""

AND = _words("also and n or plus then")

_SEGMENT = re.compile(r"[A-Za-z]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_STEM = "create|delete|destroy|execute|insert|modify|overwrite|remove|replace|truncate|update|upsert"
_GLUED = re.compile(rf"(?:[a-z]+(?:{_STEM})|(?:{_STEM})(?!d$|r$|rs$|s$)[a-z]+)")
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"))
_LONGEST = 200
"""Characters of a name that is looked into; the protocol asks for at most 128."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a name says: whether the call only reads, and in words why."""

    why: str
    reads: bool = False


@lru_cache(4_096)
def reading(name: str) -> Reading:
    """What the name of a tool says. Without a word that says that the call reads, it is taken to write."""
    if not name.isascii():
        # A letter that only looks like one of ours makes a word that is on no list.
        return Reading("its name has letters outside of ASCII")
    if len(name) > _LONGEST:
        return Reading(f"its name has more than {_LONGEST} characters")
    words = split(name)
    at = next((place for place, word in enumerate(words) if _asks(word, place, words)), None)
    for segment in _SEGMENT.findall(name):
        if (whole := segment.lower()) in WRITING or _GLUED.fullmatch(whole):
            return Reading(f"its name has the writing word {whole!r}")
    for place, word in enumerate(words):
        if _writes(word, place, words, at):
            return Reading(f"its name has the writing word {word!r}")
    if at is None:
        return Reading("no word of its name says that it only reads")
    return Reading(f"its name has the reading word {words[at]!r} and no writing one", reads=True)


def writes(word: str) -> bool:
    """Whether a value of a parameter, such as `delete` or `bulk_update`, asks for a change."""
    return any(part in WRITING or part in EITHER or _GLUED.fullmatch(part) for part in split(word))


def split(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `githubGetHTTPLog2` is github, get, http, log."""
    return tuple(word.lower() for word in _WORD.findall(name))


def _asks(word: str, place: int, words: Sequence[str]) -> bool:
    following = words[place + 1] if place + 1 < len(words) else ""
    if word == "look":
        return following == "up"
    if word == "get":
        # `pub get` and its like install what they get.
        return place == 0 or words[place - 1] not in {"apt", "go", "pub"}
    if word == "check":
        return not CHECKED.isdisjoint(words) and following not in {"in", "out", "off", "on"}
    if word == "query":
        # As a verb, with its object: alone it runs whatever it is given.
        return following not in {"", *AND, *EITHER} and STORES.isdisjoint(words)
    return word in ASKING or word in SHOWING


def _writes(word: str, place: int, words: Sequence[str], at: int | None) -> bool:
    """Whether the word at `place` is a verb that writes, where the first that asks is `at`."""
    if word in WRITING:
        return True
    after = at is not None and place > at
    if word not in EITHER:
        # "creates_list" does so, "list_creates" lists them.
        return not after and any(word.endswith(end) and word[: -len(end)] + e in WRITING for end, e in _ENDINGS)
    if at is None or not after:
        return True
    joined = not AND.isdisjoint(words[at:place])
    verb_or_thing = words[at] in SHOWING or words[at] == "query" or word == "new"
    return joined or (verb_or_thing and not _plural(words[-1]))


def _plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))
