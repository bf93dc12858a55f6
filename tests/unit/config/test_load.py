from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from agora.config.load import Loaded, load_settings
from agora.config.settings import SETTINGS, Settings, plain
from agora.errors import ConfigError, UnknownKey


def write(folder: Path, text: str, name: str = "agora.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(home: Path, cli: dict[str, object] | None = None, **env: str) -> Loaded:
    return load_settings(cli or {}, {"AGORA_HOME": str(home), **env})


def refusal(home: Path, cli: dict[str, object] | None = None, **env: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(home, cli, **env)
    return caught.value


def test_without_file_and_variables_every_value_is_a_default(tmp_path: Path) -> None:
    loaded = load_settings(env={"PATH": str(tmp_path)})
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.settings.home.is_absolute()
    assert loaded.settings.home.name == "agora"
    assert loaded.settings.model_copy(update={"home": Path()}) == Settings(home=Path())


def test_the_command_line_beats_the_environment_which_beats_the_file_which_beats_defaults(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "[store]\nreaders = 5\nbusy_timeout = 5\nsynchronous = 'full'\n")
    loaded = load(
        tmp_path, {"store.readers": 7}, AGORA_STORE_READERS="6", AGORA_STORE_BUSY_TIMEOUT="6", AGORA_AGENT="a"
    )
    assert loaded.file == file
    assert loaded.settings.store.readers == 7
    assert loaded.settings.store.busy_timeout == 6.0
    assert loaded.settings.store.synchronous == "full"
    assert loaded.settings.agent == "a"
    assert loaded.settings.log.level == "info"
    assert loaded.sources["store.readers"] == "--store-readers"
    assert loaded.sources["store.busy_timeout"] == "AGORA_STORE_BUSY_TIMEOUT"
    assert loaded.sources["store.synchronous"] == str(file)
    assert loaded.sources["agent"] == "AGORA_AGENT"
    assert loaded.sources["home"] == "AGORA_HOME"
    assert loaded.sources["log.level"] == "default"


def test_every_setting_can_be_set_in_the_file_and_by_its_variable(tmp_path: Path) -> None:
    values = {
        "agent": "'scout'",
        "namespace.default": "'team/x'",
        "store.synchronous": "'full'",
        "store.busy_timeout": "3.5",
        "store.readers": "2",
        "store.network_file_system": "'allow'",
        "index.url": "'chroma:///data/x'",
        "index.memory_mb": "64",
        "index.compact_seconds": "5",
        "index.compact_dead": "0.5",
        "embedding.model": "'other'",
        "embedding.threads": "2",
        "embedding.deadline": "4",
        "embedding.url": "'http://localhost:11434/v1'",
        "embedding.key": "'sk-1'",
        "embedding.dimension": "768",
        "embedding.timeout": "2.5",
        "embedding.retries": "0",
        "embedding.batch": "8",
        "embedding.query_prefix": "'query: '",
        "embedding.document_prefix": "'passage: '",
        "embedding.languages": "'en, it'",
        "embedding.max_tokens": "512",
        "embedding.pooling": "'cls'",
        "model.adapter": "'openai'",
        "model.url": "'http://localhost:11434/v1'",
        "model.key": "'sk-2'",
        "model.summary_model": "'large'",
        "model.extraction_model": "'small'",
        "model.timeout": "60",
        "model.max_tokens": "4000",
        "model.retries": "1",
        "model.temperature": "0.5",
        "model.json_mode": "'object'",
        "model.token_parameter": "'max_completion_tokens'",
        "model.extract_from_conversations": "true",
        "cache.enabled": "false",
        "cache.entries": "5",
        "cache.seconds": "6",
        "cache.disk_entries": "7",
        "cache.disk_seconds": "8",
        "facts.heading": "'Of {subject}:'",
        "facts.heading_many": "'Known:'",
        "facts.profile_tokens": "500",
        "conversations.fold_messages": "20",
        "conversations.fold_tokens": "5000",
        "conversations.summary_words": "300",
        "conversations.summary_tokens": "700",
        "conversations.strategy": "'Summary'",
        "limits.content_bytes": "2000",
        "limits.query_chars": "200",
        "limits.call_seconds": "5",
        "limits.line_bytes": "70000",
        "quota.agent_saves": "5000",
        "quota.namespace_saves": "7000",
        "quota.agent_mb": "90",
        "quota.namespace_mb": "800",
        "redaction.mode": "'refuse'",
        "redaction.allow": "'AKIAIOSFODNN7EXAMPLE'",
        "log.level": "'debug'",
        "log.file": "false",
        "log.max_bytes": "20000",
        "log.backups": "1",
        "tools.profile": "'agora_save, agora_query'",
        "prompts.folder": "'/data/prompts'",
        "prompts.language": "'it'",
        "server.drain": "0.5",
        "server.shared": "false",
        "server.idle_seconds": "30",
        "http.hosts": "'agora.lan, [fd00::1]:8765'",
        "http.origins": "'https://app.example.com'",
        "http.sessions": "10",
        "http.sse": "true",
        "http.rate": "2.5",
        "http.idle_seconds": "60",
        "gateway.mode": "'semantic'",
        "gateway.read_threshold": "0.4",
        "gateway.write_threshold": "0.7",
        "gateway.semantic_threshold": "0.6",
        "gateway.expose": "'github, fetch'",
        "gateway.result_bytes": "2000",
        "gateway.result_hours": "2",
    }
    assert {"home", *values} == {setting.key for setting in SETTINGS}
    lines = [f"{key} = {value}" for key, value in values.items()]
    file = write(tmp_path, "\n".join(lines))
    by_file = load(tmp_path)
    variables = {s.variable: values[s.key].strip("'") for s in SETTINGS if s.key in values}
    by_variable = load(tmp_path / "empty", None, **variables)
    assert by_file.settings.model_copy(update={"home": by_variable.settings.home}) == by_variable.settings
    assert all(source == str(file) for key, source in by_file.sources.items() if key != "home")
    assert set(by_variable.sources.values()) == {setting.variable for setting in SETTINGS}
    defaults = {row.key: row.value for row in load(tmp_path / "empty").rows()}
    assert all(row.value != defaults[row.key] for row in by_file.rows())


def test_an_option_that_was_not_given_is_none_and_changes_nothing(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"store.readers": None, "config": None}, AGORA_STORE_READERS="6")
    assert loaded.settings.store.readers == 6


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    loaded = load(tmp_path, AGORA_AGENT="", AGORA_STORE_READERS=" ", AGORA_CONFIG="")
    assert loaded.settings.agent is None
    assert loaded.sources["store.readers"] == "default"


def test_an_unknown_key_in_the_file_names_file_line_and_the_nearest_key(tmp_path: Path) -> None:
    file = write(tmp_path, "agent = 'a'\n\n[store]\n# readers = 3\nsynchronus = 'full'\n")
    error = refusal(tmp_path)
    assert isinstance(error, UnknownKey)
    assert error.message == f"{file}:5: unknown setting 'store.synchronus'"
    assert error.hint == "Did you mean store.synchronous?"


@pytest.mark.parametrize(
    ("text", "line", "key", "meant"),
    [
        ("[stoer]\nreaders = 3\n", 1, "stoer", "store"),
        ("\nreaders = 3\n", 2, "readers", "store.readers"),
        ("log.levle = 'info'\n", 1, "log.levle", "log.level"),
        ("log = { levle = 'info' }\n", None, "log.levle", "log.level"),
        ("[store.more]\nx = 1\n", 1, "store.more", "store.readers"),
    ],
)
def test_an_unknown_table_or_dotted_key_is_refused_too(
    tmp_path: Path, text: str, line: int | None, key: str, meant: str
) -> None:
    file = write(tmp_path, text)
    error = refusal(tmp_path)
    place = str(file) if line is None else f"{file}:{line}"
    assert error.message == f"{place}: unknown setting {key!r}"
    assert meant in error.hint


def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    error = refusal(tmp_path, AGORA_STORE_SYNCRONOUS="full")
    assert isinstance(error, UnknownKey)
    assert "AGORA_STORE_SYNCRONOUS" in error.message
    assert error.hint == "Did you mean AGORA_STORE_SYNCHRONOUS?"
    assert refusal(tmp_path, AGORA_CONFIGG="x").hint == "Did you mean AGORA_CONFIG?"
    assert "agora config" in refusal(tmp_path, AGORA_QQQ="x").hint


def test_an_unknown_option_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    error = refusal(tmp_path, {"store.reader": 3})
    assert isinstance(error, UnknownKey)
    assert error.hint == "Did you mean store.readers?"


def test_variables_in_text_values_are_replaced(tmp_path: Path) -> None:
    write(tmp_path, 'agent = "${WHO}-${WHERE}"\n[store]\nreaders = "${N}"\n[embedding]\nmodel = "$${WHO} $5"\n')
    loaded = load(tmp_path, WHO="scout", WHERE="lab", N="9")
    assert loaded.settings.agent == "scout-lab"
    assert loaded.settings.store.readers == 9
    assert loaded.settings.embedding.model == "${WHO} $5"


def test_a_variable_that_is_not_set_is_named_with_its_key(tmp_path: Path) -> None:
    file = write(tmp_path, '\nagent = "${NOBODY}"\n')
    error = refusal(tmp_path)
    assert error.message.startswith(f"{file}:2: agent needs the environment variable 'NOBODY'")


def test_a_refused_value_is_shown_as_it_is_written_not_with_the_secret_in_it(tmp_path: Path) -> None:
    file = write(tmp_path, '[store]\nreaders = "${SAID}"\n')
    error = refusal(tmp_path, SAID="hunter2")
    assert error.message.startswith(f"{file}:2: store.readers cannot be '${{SAID}}': ")
    assert "hunter2" not in str(error.details())


def test_a_file_that_is_no_toml_is_refused_with_file_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, "[store]\nreaders = \n")
    assert refusal(tmp_path).message == f"{file}:2: is no valid TOML: Invalid value"
    write(tmp_path, "[store]\nreaders = [1,\n")
    assert refusal(tmp_path).message.startswith(f"{file}:3: is no valid TOML")


def test_a_file_with_windows_line_ends_and_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "agora.toml").write_bytes("\ufeff[store]\r\nreaders = 3\r\n".encode())
    assert load(tmp_path).settings.store.readers == 3


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agora.toml").write_bytes("agent = 'Zoë'\n".encode("latin-1"))
    assert "UTF-8" in refusal(tmp_path).message


def test_a_table_given_as_a_value_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "store = 3\n")
    assert refusal(tmp_path).message == f"{file}:1: store is a table, not a value"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("store.readers", "0"),
        ("store.readers", "33"),
        ("store.readers", "4.5"),
        ("store.readers", "true"),
        ("store.readers", "'many'"),
        ("store.readers", "{ n = 1 }"),
        ("store.busy_timeout", "0"),
        ("store.busy_timeout", "inf"),
        ("store.busy_timeout", "nan"),
        ("store.synchronous", "'off'"),
        ("log.level", "'loud'"),
        ("log.level", "3"),
        ("log.file", "'perhaps'"),
        ("agent", "5"),
        ("agent", "'  '"),
        ("agent", "{ name = 'x' }"),
        ("namespace.default", "'a b'"),
        ("namespace.default", "'../x'"),
        ("embedding.model", "''"),
        ("server.drain", "-1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place_and_key(tmp_path: Path, key: str, value: str) -> None:
    file = write(tmp_path, f"# first line\n{key} = {value}\n", "other.toml")
    error = refusal(tmp_path / "home", AGORA_CONFIG=str(file))
    assert error.message.startswith(f"{file}:2: {key} cannot be ")


def test_a_home_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "home = 3\n")
    with pytest.raises(ConfigError, match="home cannot be 3"):
        load_settings(env={"AGORA_CONFIG": str(file)})


def test_all_wrong_values_are_reported_at_once(tmp_path: Path) -> None:
    error = refusal(tmp_path, {"log.backups": -1}, AGORA_STORE_READERS="99", AGORA_LOG_LEVEL="loud")
    assert "AGORA_STORE_READERS: store.readers cannot be '99'" in error.message
    assert "AGORA_LOG_LEVEL: log.level cannot be 'loud'" in error.message
    assert "--log-backups: log.backups cannot be -1" in error.message


def test_a_wrong_option_is_named_as_it_is_typed(tmp_path: Path) -> None:
    assert refusal(tmp_path, {"namespace.default": "a b"}).message.startswith("--namespace: namespace.default cannot")


def test_words_of_a_choice_may_be_written_in_any_case(tmp_path: Path) -> None:
    loaded = load(tmp_path, AGORA_STORE_SYNCHRONOUS="FULL", AGORA_LOG_LEVEL="Debug")
    assert (loaded.settings.store.synchronous, loaded.settings.log.level) == ("full", "debug")


def test_a_default_namespace_is_kept_in_its_canonical_spelling(tmp_path: Path) -> None:
    assert load(tmp_path, AGORA_NAMESPACE_DEFAULT=" My_Team/X ").settings.namespace.default == "my-team/x"


def test_a_configuration_file_elsewhere_may_say_where_home_is(tmp_path: Path) -> None:
    file = write(tmp_path / "etc", "home = '../data'\n", "my.toml")
    loaded = load_settings(env={"AGORA_CONFIG": str(file)})
    assert loaded.settings.home == tmp_path / "data"
    assert loaded.sources["home"] == str(file)
    assert loaded.file == file


def test_the_option_names_the_file_before_the_variable_does(tmp_path: Path) -> None:
    first, second = write(tmp_path, "agent = 'x'", "1.toml"), write(tmp_path, "agent = 'y'", "2.toml")
    assert load(tmp_path, {"config": first}, AGORA_CONFIG=str(second)).settings.agent == "x"


def test_the_file_in_the_data_folder_cannot_move_the_data_folder(tmp_path: Path) -> None:
    file = write(tmp_path, "home = '/elsewhere'\n")
    assert refusal(tmp_path).message == f"{file}:1: home cannot be set in the file that lies in it"


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    error = refusal(tmp_path, AGORA_CONFIG=str(missing))
    assert error.message.startswith(f"{missing}: cannot be read")
    assert "AGORA_CONFIG" in error.hint


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agora.toml").mkdir()
    assert "cannot be read" in refusal(tmp_path).message


def test_a_relative_home_is_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(Path("data/../here")).settings.home == Path.cwd() / "here"


def test_a_tilde_in_home_is_the_users_home() -> None:
    assert load(Path("~/notes")).settings.home == Path("~/notes").expanduser()


def test_an_unknown_user_in_home_is_refused() -> None:
    assert "~nobody-has-this-name" in refusal(Path("~nobody-has-this-name/x")).message


def test_loading_creates_nothing(tmp_path: Path) -> None:
    load(tmp_path / "not" / "there")
    assert list(tmp_path.iterdir()) == []


def test_settings_cannot_be_changed_or_given_unknown_names(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with pytest.raises(ValidationError, match="frozen"):
        settings.home = tmp_path / "other"
    with pytest.raises(ValidationError, match="frozen"):
        settings.store.readers = 3
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings(hom=tmp_path)  # type: ignore[call-arg]


def test_rows_hold_each_setting_once_with_value_source_and_help(tmp_path: Path) -> None:
    rows = load(tmp_path, AGORA_LOG_FILE="no").rows()
    assert [row.key for row in rows] == [setting.key for setting in SETTINGS]
    assert all(row.help.endswith(".") for row in rows)
    by_key = {row.key: (row.value, row.source) for row in rows}
    assert by_key["home"] == (str(tmp_path), "AGORA_HOME")
    assert by_key["log.file"] == (False, "AGORA_LOG_FILE")
    assert by_key["server.drain"] == (1.0, "default")
    assert by_key["agent"] == (None, "default")


def test_a_secret_is_shown_as_stars() -> None:
    assert plain(SecretStr("hunter2")) == "********"


@pytest.mark.parametrize("written", ["12345678", "true", "['12345678']"])
def test_a_key_that_is_no_text_is_taken_and_not_shown_in_an_error(tmp_path: Path, written: str) -> None:
    write(tmp_path, f"embedding.key = {written}\n")
    loaded = load(tmp_path)
    assert {row.key: row.value for row in loaded.rows()}["embedding.key"] == "********"
    assert "12345678" not in repr(loaded)


def test_blanks_of_a_prefix_count(tmp_path: Path) -> None:
    write(tmp_path, "embedding.query_prefix = 'query: '\n")
    loaded = load(tmp_path, AGORA_EMBEDDING_DOCUMENT_PREFIX="passage: ")
    assert (loaded.settings.embedding.query_prefix, loaded.settings.embedding.document_prefix) == (
        "query: ",
        "passage: ",
    )


def test_the_environment_of_the_process_is_read_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGORA_HOME", str(tmp_path))
    assert load_settings().settings.home == tmp_path


def test_importing_the_settings_loads_nothing_above_the_configuration() -> None:
    code = "import sys, agora.config.load; print(*sorted(m for m in sys.modules if m.startswith('agora')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert [name for name in run.stdout.split() if not name.startswith("agora.config")] == [
        "agora",
        "agora.abridging",
        "agora.errors",
        "agora.errors.backend",
        "agora.errors.base",
    ]


def test_relative_paths_start_from_the_file_that_names_them_or_from_the_folder_of_the_process(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    (home / "agora.toml").write_text("[prompts]\nfolder = 'mine'\n[embedding]\nmodel = './model'\n", "utf-8")
    loaded = load_settings({}, {"AGORA_HOME": str(home)}, folder=work)
    assert loaded.settings.prompts.folder == home / "mine"
    assert loaded.settings.embedding.model == str(home / "model")
    given = {"AGORA_HOME": "../home", "AGORA_PROMPTS_FOLDER": "theirs", "AGORA_EMBEDDING_MODEL": "models/x"}
    loaded = load_settings({}, given, folder=work)
    assert loaded.settings.home == home
    assert loaded.settings.prompts.folder == work / "theirs"
    assert loaded.settings.embedding.model == str(work / "models" / "x")


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2-int8", "openai:org/model", "openai:nomic"])
def test_a_model_that_is_no_path_stays_as_it_is(model: str, tmp_path: Path) -> None:
    loaded = load_settings({}, {"AGORA_HOME": str(tmp_path), "AGORA_EMBEDDING_MODEL": model})
    assert loaded.settings.embedding.model == model
