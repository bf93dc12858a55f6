from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text import analysis, languages, stemming
from agora.text.analysis import QUERY_CHARACTERS, Group, analyse, analyse_query

Find = Callable[[Sequence[str], str], list[int]]

any_text = st.text(st.characters(exclude_categories=["Cs"]))

# Each text, and queries that must find it among all the others.
TEXTS = [
    ("The client retries after a timeout", ["retry", "Retrying", "RETRIES client", "timeouts"]),
    ("La configurazione del servizio è nella città", ["configurazioni", "citta", "città", "servizi"]),
    ("Ошибка при подключении к базе: ёлка", ["ошибки", "ошибкой", "подключение", "елка", "Ёлки"]),
    ("Die Größe der Datenbanken ist begrenzt", ["größe", "groesse", "datenbank"]),
    ("Les déploiements échouent souvent le vendredi", ["déploiement", "echouent", "vendredi"]),
    ("Las contraseñas se guardan en el almacén", ["contraseña", "contrasenas", "almacen"]),
    ("As senhas não são válidas nas instalações", ["senha", "instalacoes", "instalação", "valida"]),
    ("De instellingen van de gebruiker zijn gewijzigd", ["instelling", "gebruikers"]),
    ("Η βάση δεδομένων απέτυχε", ["βαση", "βάση"]),
    ("数据库连接失败", ["数据库", "数据", "连接失败"]),
    ("データベースの鍵を更新する", ["データ", "鍵", "更新", "データベース"]),
    ("데이터베이스를 백업한다", ["데이터베이스", "백업"]),
    ("ฐานข้อมูลล้มเหลว", ["ข้อมูล", "ฐานข้อมูล"]),
    ("ຖານຂໍ້ມູນ", ["ຂໍ້ມູນ"]),
    ("មូលដ្ឋានទិន្នន័យ", ["ទិន្នន័យ"]),
    ("مرحبا بالعالم", ["مَرْحَبًا", "العالم"]),
    ("שָׁלוֹם עולם", ["שלום"]),
    ("हिन्दी में लिखी टिप्पणियाँ", ["हिन्दी", "हिंदी लिखी"][:1]),
    ("Deployed 🚀 by 👩‍💻 from 🇮🇹", ["🚀", "👩", "🇮🇹"]),
    ("getUserName lives in src/agora/text/my_file.py", ["getUserName", "get_user_name", "my_file.py", "my_file"]),
    ("Fixed in v1.2.3 by import-linter and e-mail", ["1.2.3", "v1.2", "import_linter", "email"]),
    ("ERR_CONN_RESET is ticket OPS-00001, see #1234", ["err_conn_reset", "OPS-00001", "ops 00001", "#1234", "1234"]),
    ("Python 3.11 on 2024-05-01 at localhost:5432", ["3.11", "2024-05-01", "2024", "5432"]),
    ("commit d670460b4b4aece5915caf5c68d12f560a9fe3e4", ["d670460", "d670460b4b"]),
    ("written in C++ and F#", ["c++", "F#"]),
]


@pytest.mark.parametrize(
    ("number", "query"), [(number, query) for number, (_, queries) in enumerate(TEXTS) for query in queries]
)
def test_a_text_is_found_in_any_language_and_the_others_are_not(find: Find, number: int, query: str) -> None:
    assert find([text for text, _ in TEXTS], query) == [number]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("text", [text for text, _ in TEXTS])
def test_a_text_is_found_by_itself_in_every_normal_form(find: Find, text: str, form: str) -> None:
    other = unicodedata.normalize("NFD" if form in {"NFC", "NFKC"} else "NFC", text)
    assert find([other], unicodedata.normalize(form, text)) == [0]  # type: ignore[arg-type]


@given(any_text)
def test_canonically_equal_texts_have_the_same_terms(text: str) -> None:
    assert analyse(unicodedata.normalize("NFC", text)) == analyse(unicodedata.normalize("NFD", text))


@given(any_text)
def test_a_text_has_a_term_of_every_word_that_it_asks_for(text: str) -> None:
    terms = set(analyse(text).terms)
    assert all(terms.intersection(group.alternatives) for group in analyse_query(text))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("version 311", "3.11"),
        ("version 3.11", "311"),
        ("pages 3 and 11", "3.11"),
        ("version 3.11", "11"),
        ("step 3-11", "311"),
        ("ticket OPS-00002", "OPS-00001"),
        ("port 5433", "5432"),
        ("error ERR_CONN_REFUSED", "ERR_CONN_RESET"),
        ("written in C", "c++"),
        ("of 2024-05-02", "2024-05-01"),
        ("do not do it", "note"),
        ("が", "か"),
    ],
)
def test_what_differs_in_a_number_or_a_sign_is_not_the_same_word(find: Find, text: str, query: str) -> None:
    assert find([text], query) == []


@pytest.mark.parametrize(
    ("token", "terms"),
    [
        ("camelCase", {"camelcase", "camel_case", "camel", "case"}),
        ("HTTPServerError", {"httpservererror", "http", "server", "error"}),
        ("snake_case", {"snake_case", "snake", "case"}),
        ("kebab-case", {"kebab_case", "kebab", "case"}),
        ("dotted.names", {"dotted_names", "dotted", "names"}),
        ("path/to/file.py", {"path_to_file_py", "file_py", "path", "file", "py"}),
        ("src/my_file.py", {"my_file_py", "my_file"}),
        ("v1.2.3", {"v1_2_3", "1_2_3", "1_2"}),
        ("ERR_CONN_RESET", {"err_conn_reset", "err", "conn", "reset"}),
        ("OPS-00001", {"ops_00001", "ops", "00001"}),
        ("C:\\Users\\me", {"c_users_me", "users", "me"}),
        ("me@example.org", {"me_example_org", "example_org", "me", "example"}),
        ("2024-05-01T10:30:00Z", {"2024_05_01", "2024_05", "2024", "10_30_00"}),
        ("550e8400-e29b-41d4-a716-446655440000", {"550e8400_e29b_41d4_a716_446655440000"}),
    ],
)
def test_an_identifier_is_one_term_and_its_parts(token: str, terms: set[str]) -> None:
    assert terms <= set(analyse(f"see {token}, please").terms)


def test_an_identifier_is_read_alike_in_an_ascii_text_and_in_another() -> None:
    names = "camelCase a-b x.y p/q.py v1.2 C++ #12 __init__ don't l'anno"
    assert analyse(f"{names} 数").terms[:-1] == analyse(names).terms


def test_an_identifier_weighs_less_than_its_whole_when_only_a_part_matches() -> None:
    groups = {group.text: group.alternatives for group in analyse_query("OPS-00001")}
    assert groups["ops"][:1] == ("ops_00001",)
    assert "ops" in groups["ops"]
    assert "ops" not in groups["00001"]


def test_the_length_counts_words_and_not_their_stems() -> None:
    assert analyse("retries failing services").length == 3
    assert analyse("path/to/file.py").length == 4
    assert analyse("数据库").length == 2
    assert analyse("สวัสดี").length == 3
    assert analyse("").length == 0


def test_terms_come_in_order_and_repeat() -> None:
    assert analyse("dog cat dog").terms == ["dog", "cat", "dog"]


def test_a_query_has_one_group_per_distinct_word_in_order() -> None:
    groups = analyse_query("Deploy the dog, deploy THE cat")
    assert [group.text for group in groups] == ["deploy", "the", "dog", "cat"]


def test_the_word_itself_stands_before_its_stems() -> None:
    (group,) = analyse_query("Configurazioni")
    assert group.alternatives[0] == "configurazioni"
    assert "configur" in group.alternatives


def test_function_words_are_marked_and_words_that_name_things_elsewhere_are_not() -> None:
    marked = {
        group.text: group.common for group in analyse_query("the della что und pour que não het AI CI OS war pool")
    }
    assert [word for word, common in marked.items() if common] == ["the", "della", "что", "und", "que", "não", "het"]


@pytest.mark.parametrize(
    "query", ['"foo AND (bar*', "foo NEAR/2 bar", "title:foo -bar ^", "foo* + {bar}", "';--foo\x00bar"]
)
def test_operators_of_full_text_search_are_only_text(find: Find, query: str) -> None:
    assert {"foo", "bar"} <= {group.text for group in analyse_query(query)}
    assert find([query, "other"], query) == [0]


@pytest.mark.parametrize("query", ["", " \n", "!!! ???", '""', "__", "\u0000", "-", "…"])
def test_a_query_without_words_has_no_groups(query: str) -> None:
    assert analyse_query(query) == ()


def test_a_long_query_is_bounded_and_keeps_words_of_content() -> None:
    text = " ".join(f"the of and word{number} e {number}.5" for number in range(10_000))
    groups = analyse_query(text)
    assert len(groups) == 64
    assert not any(group.common for group in groups)
    assert groups[:2] == (Group("word0", ("word0",)), Group("0.5", ("0_5",)))
    assert len(analyse_query(text, max_groups=5)) == 5


def test_function_words_fill_what_is_left_of_a_query() -> None:
    assert [group.text for group in analyse_query("the who of dogs", max_groups=3)] == ["the", "who", "dogs"]


@given(any_text, st.integers(1, 8))
def test_a_query_never_has_more_groups_than_asked_for(text: str, most: int) -> None:
    groups = analyse_query(text, most)
    assert len(groups) <= most
    assert len({group.text for group in groups}) == len(groups)
    assert all(group.alternatives and len(set(group.alternatives)) == len(group.alternatives) for group in groups)


@pytest.mark.parametrize(
    "text",
    [
        "1." * 200_000,
        "a." * 200_000,
        "a/" * 200_000,
        "aB" * 200_000,
        "x" * 400_000,
        "ﷺ" * 100_000,
        "数据" * 100_000,
        "'" * 400_000,
    ],
)
def test_a_hostile_text_costs_time_and_terms_in_proportion_to_its_length(text: str) -> None:
    assert len(analyse(text).terms) <= 25 * len(text)
    assert len(analyse_query(text)) <= 64
    assert sum(map(len, (group.text for group in analyse_query(text)))) <= 20 * QUERY_CHARACTERS


def test_no_cache_keeps_a_long_word() -> None:
    caches = [
        *(analysis._document_terms, analysis._query_groups, analysis._forms_of_word),
        *(stemming._stem, languages._votes),
    ]
    long = "x" * 100_000
    before = [cache.cache_info().currsize for cache in caches]
    assert analyse(f"{long} {long}-1").length == 3
    assert analyse_query(long[:QUERY_CHARACTERS])
    after = [cache.cache_info().currsize for cache in caches]
    assert sum(after) - sum(before) <= 1  # the "1"


def test_threads_stem_without_disturbing_each_other() -> None:
    words = [
        f"retrie{letter}s configurazioni{letter} oшибки nationalization{letter}ing" for letter in "abcdefghijklmnop"
    ]
    expected = [analyse_query(text) for text in words]
    _forget_stems()
    found: list[list[tuple[Group, ...]]] = []
    threads = [threading.Thread(target=lambda: found.append([analyse_query(text) for text in words])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [expected] * 8


def _forget_stems() -> None:
    analysis._query_groups.cache_clear()
    analysis._forms_of_word.cache_clear()
    stemming._stem.cache_clear()
