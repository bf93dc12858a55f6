"""What somebody who writes Russian says of themselves, their project, and of named things. Values keep their case."""

from __future__ import annotations

from typing import Final

from agora.llm.patterns.rules import Rule, a_name, a_place, a_thing, a_tool, a_value, anything, rule

_ADVERB = r"(?: (?:теперь|сейчас|обычно|всегда|в основном|только|также|тоже|очень|уже|давно))*"
_R = r"(?P<r>[^,;:]{2,60}?)"
_V = r"(?P<v>.{1,200})"
_Y = r"(?P<y>.{2,80})"
_IS = r"(?:\s?[—–-]\s(?:это )?|:\s| это | теперь |\s?[—–-]\sтеперь )"
_WE = rf"(?:(?:я|мы){_ADVERB} )?"
_USE = rf"{_WE}(?:использую|используем|пользуюсь|пользуемся|применяем|применяю){_ADVERB}"
_SWITCHED = rf"{_WE}(?:перешли|переехали|перешёл|перешел|перешла|мигрировали|переключились){_ADVERB}"
_S = r"(?P<s>[^,;:—–]{2,100}?)"
_OUR = r"(?:мо[йяёи]|мое|наш(?:а|е|и)?)"
_GENERIC = (
    r"(?:(?:сервиса|сервера|проекта|базы данных|базы|службы|приложения|книги|романа|города|страны|компании|фильма) "
    r"(?-i:(?=[A-Za-zА-ЯЁ«\"])))?"
)
_RELATION = (
    r"(?P<r>(?:номер порта|срок сдачи|дата сдачи|дата рождения|часовой пояс|база данных)|(?:крайний |официальный |"
    r"генеральный )?(?:порт|срок|дедлайн|автор|столица|директор|режиссёр|режиссер|основатель|владелец|язык|версия|"
    r"адрес|хост|лицензия|население|президент|мэр|валюта|руководитель|тренер|жена|муж|штаб-квартира|таймаут|лимит|"
    r"цвет|имя|название|ветка|бюджет))"
)

RULES: Final[tuple[Rule, ...]] = (
    rule("name", rf"меня зовут {_V}", "name", a_name),
    rule("name", rf"(?:зови|зовите|называй|называйте|можешь звать|можете звать|можно звать) меня (?:просто "
                 rf")?{_V}", "name", a_name),
    rule("preferred for", rf"{_WE}предпочита(?:ю|ем){_ADVERB} (?P<v>.{{1,80}}?) "
                          rf"для {_Y}", "preferred for {y}", a_thing),
    rule("preference", rf"{_WE}предпочита(?:ю|ем){_ADVERB} (?P<v>.{{1,80}}?),? (?:вместо|а не) "
                       rf"(?P<o>.{{1,80}})", "preference",
         a_thing, multi=True),
    rule("preference", rf"{_WE}предпочита(?:ю|ем){_ADVERB} {_V}", "preference", a_thing, multi=True),
    rule("used for", rf"{_USE} (?P<v>.{{1,80}}?) (?:для|в качестве|как) {_Y}", "used for {y}", a_thing),
    rule("used for", rf"для {_Y} {_USE} {_V}", "used for {y}", a_thing),
    rule("uses", rf"{_USE} (?P<v>.{{1,60}}?) вместо (?P<o>.{{1,60}})", "uses", a_tool, multi=True),
    rule("uses", rf"{_USE} {_V}", "uses", a_tool, multi=True),
    rule("uses", rf"{_WE}выбрали (?P<v>.{{1,60}}?) вместо (?P<o>.{{1,60}})", "uses", a_tool, multi=True),
    rule("uses", rf"{_WE}заменили (?P<o>.{{1,60}}?) на {_V}", "uses", a_tool, multi=True),
    rule("home", rf"{_WE}(?:переехал[аи]?)(?: из .{{1,60}}?)? в {_V}", "home", a_place),
    rule("used for", rf"{_SWITCHED}(?: (?:с|со) .{{1,60}}?)? на (?P<v>.{{1,60}}?) для {_Y}", "used for {y}", a_tool),
    rule("uses", rf"{_SWITCHED} (?:с|со) (?P<o>.{{1,60}}?) на {_V}", "uses", a_tool, multi=True),
    rule("uses", rf"{_SWITCHED} на {_V}", "uses", a_tool, multi=True),
    rule("home", rf"{_WE}(?:живу|живём|живем|проживаю){_ADVERB} (?:в|во|на) {_V}", "home", a_place),
    rule("employer", rf"{_WE}(?:работаю|работаем){_ADVERB} (?:в|во|на) {_V}", "employer", a_place),
    rule("occupation", rf"{_WE}работаю{_ADVERB} (?P<v>[а-яё-]+(?:ом|ем|ём|ой|ей)(?: "
                       rf"[а-яё]+)?)", "occupation", anything),
    rule("origin", rf"(?:я )?(?:родом )?из {_V}", "origin", a_place),
    rule("born in", r"(?:я )?родил(?:ся|ась) (?:в|во) (?P<v>[А-ЯЁ].+)", "born in", a_place),
    rule("age", r"мне (?P<v>\d{1,3}) (?:лет|год|года)", "age", anything),
    rule("languages", rf"(?:я )?(?:говорю|разговариваю) (?:на )?{_V}", "languages", a_tool, multi=True),
    rule("allergies", rf"у меня аллергия на {_V}", "allergies", a_thing, multi=True),
    rule("diet", r"я (?P<v>веган|веганка|вегетарианец|вегетарианка)", "diet", anything),
    rule("likes", rf"(?:мне нравится|мне нравятся|{_WE}люблю|обожаю){_ADVERB} {_V}", "likes", a_tool, multi=True),
    rule("dislikes", rf"{_WE}ненавижу{_ADVERB} {_V}", "dislikes", a_tool, multi=True),
    rule("changed", rf"{_RELATION} (?:перенес(?:ён|ен|ли|ена)|измен(?:ён|ен|или|ился)|сдвинули|сдвинут|"
                    rf"сменил(?:и|ся))(?: (?:с|со) .{{1,40}}?)?"
         rf" на {_V}", "{r}", anything),
    rule("own", rf"{_OUR} {_R}{_IS}{_V}", "{r}", anything),
    rule("port of", rf"{_S} (?:слушает|работает на|слушает на)(?: порт| порту| порте)? "
                    rf"(?P<v>\d{{2,5}})", "port", a_value),
    rule("the", rf"{_RELATION}(?:{_IS}|\s)(?P<v>\d.{{0,60}})", "{r}", anything),
    rule("the", rf"{_RELATION}{_IS}{_V}", "{r}", anything),
    rule("relation of", rf"{_RELATION} (?:у |для )?{_GENERIC}{_S}{_IS}{_V}", "{r}", anything),
    rule("born in", rf"{_S} родил(?:ся|ась) в (?P<v>[А-ЯЁA-Z].+)", "born in", a_place),
    rule("died in", rf"{_S} умер(?:ла)? в (?P<v>[А-ЯЁA-Z].+)", "died in", a_place),
    rule("lives in", rf"{_S} жив[её]т в {_V}", "home", a_place),
    rule("works for", rf"{_S} работает в {_V}", "employer", a_place),
    rule("uses for", rf"{_S} использует (?P<v>.{{1,80}}?) для {_Y}", "used for {y}", a_tool),
    rule("uses it", rf"{_S} использует {_V}", "uses", a_tool, multi=True),
    rule("prefers", rf"{_S} предпочитает {_V}", "preference", a_tool, multi=True),
    rule("depends on", rf"{_S} зависит от {_V}", "depends on", a_tool, multi=True),
    rule("written in", rf"{_S} написан[ао]? на {_V}", "written in", a_place),
    rule("located in", rf"{_S} находится (?:в|на) {_V}", "located in", a_place),
)  # fmt: skip
