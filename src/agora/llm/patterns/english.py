"""What somebody who writes English says of themselves, their project and its parts."""

from __future__ import annotations

import re
from typing import Final

from agora.llm.patterns.rules import Rule, a_name, a_place, a_thing, a_tool, a_value, anything, rule

_ADVERB = (
    r"(?: (?:now|currently|always|usually|generally|mostly|mainly|really|strongly|much|actually|all|still|also|"
    r"already|only|exclusively|primarily|personally|recently|just|finally))*"
)
_I = rf"(?:I|we){_ADVERB}"
_HAVE = rf"(?:I|we)(?:'ve| have)?{_ADVERB}"
_AM = rf"(?:I am|I'm|we are|we're){_ADVERB}"
_USE = rf"(?:{_I} use|{_AM} using)"
_OUR = r"(?:my|our|the)"
_R = r"(?P<r>[^,;:]{2,60}?)"
_V = r"(?P<v>.{1,200})"
_Y = r"(?P<y>.{2,80})"
_IS = r"(?: is| are)(?: (?:now|currently|still|set to|called|named|actually))*"
_SWITCHED = (
    r"(?:switched|moved|migrated|changed|transitioned|converted|upgraded|standardi[sz]ed|settled|are moving|are "
    r"switching)(?: over)?"
)
_CHOSE = r"(?:chose|chosen|picked|adopted|settled on)"
_CHANGED = (
    r"(?:moved|changed|pushed|postponed|extended|shifted|brought forward|set|increased|raised|lowered|reduced|"
    r"updated)(?: (?:back|forward|out))?"
)

CUE: Final = re.compile(
    r"(?:I|I'm|I've|we|we're|we've|my|our|the|hi|hello|hey|calls?|please|just|you can|you may|everyone|everybody|"
    r"people|friends)\b",
    re.IGNORECASE,
)
"""How every clause begins that one of these rules matches."""

RULES: Final[tuple[Rule, ...]] = (
    rule(
        "name",
        rf"(?:please |just |you can |you may |everyone |everybody |people |friends )*calls? me {_V}",
        "name",
        a_name,
    ),
    rule("name", rf"my (?:full |first |real )?name(?: is|'s) (?:actually )?{_V}", "name", a_name),
    rule("name", rf"(?:I go by|I am called|I'm called|I am known as|I'm known as) {_V}", "name", a_name),
    rule(
        "name",
        r"(?:hi|hello|hey)(?: \w+)?(?: there)?[,!.]* (?:I am|I'm|this is) (?P<v>[^\s,.!]+)(?:[,.! ].*)?",
        "name",
        a_name,
    ),
    rule(
        "preferred for",
        rf"{_I} prefer (?P<v>(?!to ).{{1,80}}?)(?: over .{{1,80}}?| to .{{1,80}}?)? (?:for|when|in) {_Y}",
        "preferred for {y}",
        a_thing,
    ),
    rule(
        "preference",
        rf"{_I} prefer (?P<v>(?!to ).{{1,80}}?) (?:over|to|rather than|instead of) (?P<o>.{{1,80}})",
        "preference",
        a_thing,
        multi=True,
    ),
    rule("preference", rf"{_I} prefer {_V}", "preference", a_thing, multi=True),
    rule("used for", rf"{_USE} (?P<v>.{{1,80}}?) (?:for|as) {_Y}", "used for {y}", a_thing),
    rule("used to", rf"{_USE} (?P<v>.{{1,80}}?) to (?P<y>(?!the ).{{2,80}})", "used to {y}", a_thing),
    rule(
        "uses",
        rf"{_USE} (?P<v>.{{1,60}}?) (?:instead of|rather than|over) (?P<o>.{{1,60}})",
        "uses",
        a_tool,
        multi=True,
    ),
    rule("uses", rf"{_USE} {_V}", "uses", a_tool, multi=True),
    rule(
        "used for",
        rf"{_HAVE} {_CHOSE} (?P<v>.{{1,60}}?)(?: (?:over|instead of) .{{1,60}}?)? for {_Y}",
        "used for {y}",
        a_tool,
    ),
    rule(
        "uses", rf"{_HAVE} {_CHOSE} (?P<v>.{{1,60}}?) (?:over|instead of) (?P<o>.{{1,60}})", "uses", a_tool, multi=True
    ),
    rule("uses", rf"{_HAVE} replaced (?P<o>.{{1,60}}?) (?:with|by) {_V}", "uses", a_tool, multi=True),
    rule(
        "used for",
        rf"{_HAVE} {_SWITCHED} (?P<y>(?:the|our|my|all|everything)? ?[^,]{{2,60}}?)(?: over)? from .{{1,60}}? to {_V}",
        "used for {y}",
        a_tool,
    ),
    rule(
        "used for",
        rf"{_HAVE} {_SWITCHED}(?: from .{{1,60}}?)? (?:to|on) (?P<v>.{{1,60}}?) for {_Y}",
        "used for {y}",
        a_tool,
    ),
    rule("home", rf"I(?:'ve| have)?{_ADVERB} (?:moved|relocated)(?: from [^,]{{1,60}}?)? to {_V}", "home", a_place),
    rule("uses", rf"{_HAVE} {_SWITCHED} from (?P<o>.{{1,60}}?) to {_V}", "uses", a_tool, multi=True),
    rule(
        "uses",
        rf"{_HAVE} (?:switched|migrated|upgraded|transitioned|standardi[sz]ed|settled)(?: over)? (?:to|on) {_V}",
        "uses",
        a_tool,
        multi=True,
    ),
    rule(
        "home",
        rf"(?:{_I} (?:live|reside)|{_AM} (?:living|based|located)) in (?:an? [a-z ]{{2,40}} in )?{_V}",
        "home",
        a_place,
    ),
    rule(
        "employer",
        rf"(?:I{_ADVERB} work|I(?:'m| am){_ADVERB} (?:working|employed)) (?:at|for|by) (?P<v>.{{1,100}}?)(?: as .+)?",
        "employer",
        a_place,
    ),
    rule("employer", rf"I(?:'ve| have)?{_ADVERB} joined (?P<v>[^,]{{2,60}}?)(?: as .+)?", "employer", a_place),
    rule(
        "occupation",
        rf"I{_ADVERB} work as (?:an?|the) (?P<v>.{{2,60}}?)(?: (?:at|for|in|with) .+)?",
        "occupation",
        a_thing,
    ),
    rule("origin", rf"{_AM} (?:originally )?from {_V}", "origin", a_place),
    rule("born in", rf"I was born (?:and raised )?in {_V}", "born in", a_place),
    rule("born on", rf"I was born on {_V}", "birthday", a_value),
    rule("age", r"(?:I am|I'm) (?P<v>\d{1,3})(?: years old)?", "age", anything),
    rule("languages", rf"I{_ADVERB} speak (?:fluent |native )?{_V}", "languages", a_name, multi=True),
    rule("allergies", rf"{_AM} allergic to {_V}", "allergies", a_thing, multi=True),
    rule("spouse", rf"{_AM} married to {_V}", "spouse", a_name),
    rule(
        "diet",
        rf"(?:I am|I'm|I(?:'ve| have)?(?: decided to)? (?:go|gone|went|become|became|turned)){_ADVERB} "
        r"(?:an? |fully |strictly )*"
        r"(?P<v>(?:vegan|vegetarian|pescatarian|flexitarian|carnivore))(?:[,. ].*)?",
        "diet",
        anything,
    ),
    rule("likes", rf"{_I} (?:like|love|enjoy|adore) {_V}", "likes", a_tool, multi=True),
    rule("dislikes", rf"{_I} (?:hate|dislike|detest|loathe) {_V}", "dislikes", a_tool, multi=True),
    rule("stored in", rf"{_I} (?:store|keep) (?P<y>[^,]{{2,60}}?) (?:in|on|at) {_V}", "{y} stored in", a_thing),
    rule("runs on", rf"{_I} (?:run|host)(?: (?:everything|it all))? on {_V}", "runs on", a_tool),
    rule(
        "changed",
        rf"{_OUR} {_R} (?:has |have )?(?:been |was |is |were )?{_CHANGED}(?: from .{{1,40}}?)? (?:to|until|for) {_V}",
        "{r}",
        anything,
    ),
    rule("own", rf"(?:my|our) {_R}{_IS} {_V}", "{r}", anything),
)

_ROLE: Final = re.compile(
    r"(?:(?:data|software|civil|web|product|project|senior|junior|lead|staff|freelance|retired|backend|frontend|"
    r"full-stack|machine learning|mechanical|electrical|high school|primary school|graphic|interior|systems?|"
    r"security|network|research|registered|family|social|PhD) )*(?:engineer|developer|programmer|designer|"
    r"architect|teacher|professor|lecturer|nurse|doctor|surgeon|physician|dentist|lawyer|attorney|accountant|"
    r"consultant|analyst|scientist|researcher|biologist|chemist|physicist|mathematician|economist|psychologist|"
    r"therapist|journalist|editor|translator|librarian|photographer|artist|musician|painter|sculptor|actor|actress|"
    r"chef|cook|baker|barista|waiter|waitress|farmer|gardener|carpenter|electrician|plumber|mechanic|driver|pilot|"
    r"soldier|officer|firefighter|paramedic|pharmacist|veterinarian|manager|administrator|sysadmin|director|"
    r"founder|entrepreneur|student|intern|maintainer|contractor|tester|worker|assistant|secretary)"
)
ROLES: Final[tuple[Rule, ...]] = (
    rule(
        "occupation",
        rf"(?:I am|I'm|I(?:'ve| have) been){_ADVERB} an? (?P<v>{_ROLE.pattern})"
        r"(?: (?:at|for|with|in|from|by) .+|, .+| and .+)?",
        "occupation",
        anything,
    ),
)
BESIDE: Final[tuple[Rule, ...]] = (
    rule("employer", rf"(?:I am|I'm|I work as){_ADVERB} an? {_ROLE.pattern} (?:at|for|with) {_V}", "employer", a_place),
    rule("occupation", rf"I{_ADVERB} work (?:at|for) [^,]{{2,80}}? as an? {_V}", "occupation", a_thing),
)
"""Read beside the others: "I'm a nurse at X" says two things."""
