"""Writing the settings files: what is refused, what stays, and that no two writers lose each other's change."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents_app.config import settings_file
from agents_app.config.params import Held, Value
from agents_app.config.setting_field import SettingField
from agents_app.config.settings_holding import holding
from agents_app.config.settings_rules import SettingRefused
from agents_app.config.settings_write import SettingsFile, SettingsNotWritten, _one_at_a_time
from halo_project.errors import BadRequest, Conflict, HaloError
from halo_project.layout import HomeLayout, WorkspaceLayout
from tests.agents_app.config.support import NO_ENV, write, write_skill, write_yaml

KEY = "AKIAABCDEFGHIJST"
RETRIES = "general.agent.max_retries"
API_KEY = "models.anthropic.secrets.api_key"
COMMENTED = f"""\
# Our house
general:
  agent:
    max_retries: 3  # slow line
  # later: more
models:
  anthropic:
    secrets:
      api_key: {KEY}  # of the team
tavily: {{params: {{depth: 2}}}}
"""


@pytest.fixture
def ours(halo_home: HomeLayout) -> SettingsFile:
    return SettingsFile(halo_home, {"SIZE": "99", "SET": "5"}.get)


@pytest.fixture
def theirs(halo_home: HomeLayout, workspace: Path) -> SettingsFile:
    return SettingsFile(halo_home, NO_ENV, workspace)


def says(file: SettingsFile) -> Any:
    return yaml.safe_load(file.path.read_text()) if file.path.exists() else None


class TestLeaves:
    def test_one_is_set_changed_and_removed(self, ours: SettingsFile) -> None:
        ours.set(RETRIES, 3)
        ours.set("general.session.max_queue_size", "12")
        assert ours.path.read_text() == "general:\n  agent:\n    max_retries: 3\n  session:\n    max_queue_size: 12\n"
        ours.set(RETRIES, 4)
        ours.set("general.session.max_queue_size", None)
        assert says(ours) == {"general": {"agent": {"max_retries": 4}}}
        ours.remove(RETRIES)
        assert ours.path.read_text() == ""
        ours.remove(RETRIES)  # nothing there, nothing happens
        assert ours.path.read_text() == ""

    def test_comments_and_order_stay(self, ours: SettingsFile) -> None:
        write(ours.path, COMMENTED)
        ours.set(RETRIES, 7)
        ours.set("general.language", "zh-CN")
        after = COMMENTED.replace("3  # slow", "7  # slow").replace("slow line\n", "slow line\n  language: zh-CN\n")
        assert ours.path.read_text() == after
        ours.remove("tavily.params.depth")
        assert ours.path.read_text() == after.replace("tavily: {params: {depth: 2}}\n", "")

    def test_values_are_written_in_their_type(self, ours: SettingsFile) -> None:
        ours.set("general.server.trust_proxy", "true")
        ours.set("general.compact.compress_at", "0.5")
        ours.set("general.sandbox.hidden_dirs", "~/.a, ~/b")
        ours.set("models.openai.model", 5)
        ours.set("general.agent.max_retries", "<<SET>>")
        ours.set("general.session.max_queue_size", "<<NOT_YET_SET>>")
        assert says(ours) == {
            "general": {
                "server": {"trust_proxy": True},
                "compact": {"compress_at": 0.5},
                "sandbox": {"hidden_dirs": ["~/.a", "~/b"]},
                "agent": {"max_retries": "<<SET>>"},
                "session": {"max_queue_size": "<<NOT_YET_SET>>"},
            },
            "models": {"openai": {"model": "5"}},
        }

    @pytest.mark.parametrize(
        "value", ["no", "a: b # c", "two\nlines", '"', "\x07\x7f", "日本 😀", "- x", "%", "0x1F", "2024-01-01", " a "]
    )
    def test_any_text_comes_back_as_it_was(self, value: str, ours: SettingsFile) -> None:
        ours.set("skill.params.text", value)
        assert says(ours) == {"skill": {"params": {"text": value}}}

    def test_half_a_character_becomes_a_mark(self, ours: SettingsFile) -> None:
        ours.set("skill.params.text", "a\ud83d")
        assert says(ours) == {"skill": {"params": {"text": "a\ufffd"}}}

    def test_a_key_of_1x_moves_to_where_keys_are_now_and_goes_from_both(self, ours: SettingsFile) -> None:
        write_yaml(ours.path, {"anthropic": {"secrets": {"api_key": "old-key-of-before"}}})
        ours.set("anthropic.secrets.api_key", KEY)
        assert says(ours) == {"models": {"anthropic": {"secrets": {"api_key": KEY}}}}
        write_yaml(ours.path, {"anthropic": {"secrets": {"api_key": "old"}}, **says(ours)})
        ours.remove(API_KEY)
        assert not says(ours)

    def test_ids_with_dots_in_them(self, ours: SettingsFile) -> None:
        write_yaml(ours.path, {"my.skill": {"params": {"a": 1}}})
        ours.set("my.skill.params.a", 2)
        ours.set("my.skill.params.b.c", 3)
        assert says(ours) == {"my.skill": {"params": {"a": 2, "b": {"c": 3}}}}
        ours.remove("my.skill.params.a")
        assert says(ours) == {"my.skill": {"params": {"b": {"c": 3}}}}

    def test_misspelt_ones_can_be_removed(self, ours: SettingsFile) -> None:
        write_yaml(ours.path, {"general": {"retries": 1, "language": "en-US"}, "loose": 1})
        ours.remove("general.retries")
        ours.remove("loose")
        assert says(ours) == {"general": {"language": "en-US"}}

    @pytest.mark.parametrize(
        ("name", "value", "error", "sentence"),
        [
            (RETRIES, 0, SettingRefused, f"`{RETRIES}` must be a whole number from 1 to 20."),
            (RETRIES, "three", SettingRefused, "must be a whole number"),
            (RETRIES, 2.5, SettingRefused, "must be a whole number"),
            (RETRIES, True, SettingRefused, "must be a whole number"),
            (RETRIES, {"a": 1}, SettingRefused, "must be a whole number"),
            (RETRIES, "<<SIZE>>", SettingRefused, "must be a whole number from 1 to 20"),
            ("general.compact.compress_at", float("nan"), SettingRefused, "must be a number from 0.1 to 1"),
            ("general.sandbox.hidden_dirs", ["/a", "b"], SettingRefused, "number 2 is neither an absolute path"),
            ("general.logging.level", "loud", SettingRefused, "must be one of debug"),
            ("models.openai.endpoint", "ftp://x", SettingRefused, "beginning with http"),
            ("models.openai.endpoint", "https://me:pw@x", SettingRefused, "without user name"),
            ("skill.params.a", {"b": 1}, SettingRefused, "must be a text, a number"),
            ("skill.params.a", "x" * 70_000, SettingRefused, "at most 65,536 characters"),
            ("general.agent.max_retrys", 3, BadRequest, f"Did you mean `{RETRIES}`?"),
            ("models.antropic.model", "m", BadRequest, "Did you mean `models.anthropic.model`?"),
            ("general.session", 3, BadRequest, "not a setting Halo knows"),
            ("general.__proto__.x", 3, BadRequest, "not allowed"),
            ("__proto__.params.x", 3, BadRequest, "not allowed"),
            ("x.params.constructor", 3, BadRequest, "not allowed"),
            ("x.prototype.params.y", 3, BadRequest, "not allowed"),
            ("loose", 3, BadRequest, "not a setting Halo knows"),
            ("", 3, BadRequest, "single dots"),
            ("a..b", 3, BadRequest, "single dots"),
            ("a.params.b\n", 3, BadRequest, "single dots"),
            ("a.params.\ud83d", 3, BadRequest, "single dots"),
            ("a.params." + "b" * 600, 3, BadRequest, "single dots"),
        ],
    )
    def test_refused(self, name: str, value: Any, error: type[HaloError], sentence: str, ours: SettingsFile) -> None:
        with pytest.raises(error) as caught:
            ours.set(name, value)
        assert sentence in caught.value.message and caught.value.status in (400, 422)
        assert not ours.path.exists()


class TestOfAWorkspace:
    def test_what_is_its_own(self, theirs: SettingsFile, workspace: Path) -> None:
        theirs.set(RETRIES, 3)
        theirs.set("tavily.params.key", "<<LANG>>")
        assert theirs.path == WorkspaceLayout(workspace).settings_yaml
        assert says(theirs) == {"general": {"agent": {"max_retries": 3}}, "tavily": {"params": {"key": "<<LANG>>"}}}

    @pytest.mark.parametrize(
        "name",
        ["general.limits.shell_output_bytes", "general.sandbox.network", "general.language", "models.openai.endpoint"],
    )
    def test_what_is_global_only(self, name: str, theirs: SettingsFile) -> None:
        with pytest.raises(BadRequest, match="global-only") as caught:
            theirs.set(name, "x")
        assert caught.value.code == "setting_global_only" and not theirs.path.exists()

    @pytest.mark.parametrize("name", [API_KEY, "anthropic.secrets.api_key", "any.secrets.thing"])
    def test_secrets_never(self, name: str, theirs: SettingsFile) -> None:
        for value in (KEY, "<<ANTHROPIC_API_KEY>>"):
            with pytest.raises(BadRequest, match="Secrets do not belong"):
                theirs.set(name, value)
        assert not theirs.path.exists()

    @pytest.mark.parametrize("value", [KEY, "<<SEARCH_PASS>>", "<<SEARCH_PLACE>>"])
    def test_no_secret_parameter_of_anybody(
        self, value: str, theirs: SettingsFile, halo_home: HomeLayout, workspace: Path
    ) -> None:
        declared = {"params": [{"key": "api_key", "secret": True}]}
        write_skill(halo_home.global_skills / "tavily", config=declared)
        write_skill(WorkspaceLayout(workspace).skills / "own", config=declared)
        for name in ("tavily", "own"):
            with pytest.raises(BadRequest, match="Secrets do not belong"):
                theirs.set(f"{name}.params.api_key", value)
        assert not theirs.path.exists()

    def test_nothing_that_would_not_count(
        self, theirs: SettingsFile, ours: SettingsFile, halo_home: HomeLayout, workspace: Path
    ) -> None:
        declared = {"params": [{"key": "api_key", "secret": True}, {"key": "url"}]}
        write_skill(halo_home.global_skills / "tavily", config=declared)
        theirs.set("tavily.params.url", "https://here.example")
        ours.set("tavily.params.api_key", KEY)
        with pytest.raises(BadRequest, match="would not count in this workspace: the key that goes with it") as caught:
            theirs.set("tavily.params.url", "https://evil.example")
        assert caught.value.code == "setting_global_only"
        theirs.set(RETRIES, 3)
        write_skill(WorkspaceLayout(workspace).skills / "tavily", config=declared)
        theirs.set("tavily.params.url", "https://own.example")

    @pytest.mark.parametrize(
        "value", ["<<ANTHROPIC_API_KEY>>", "a<<HALO_PASSWORD>>", ["<<OPENAI_API_KEY>>"], "<<MY_TOKEN>>"]
    )
    def test_no_reference_to_a_key_of_ours(self, value: Any, theirs: SettingsFile) -> None:
        with pytest.raises(BadRequest, match="workspace's file may not") as caught:
            theirs.set("aide.params.k", value)
        assert caught.value.code == "setting_global_only"
        with pytest.raises(BadRequest):
            theirs.replace_values({"aide": {"params": {"k": value}}})
        assert not theirs.path.exists()

    def test_what_a_hand_wrote_there_can_be_removed(self, theirs: SettingsFile) -> None:
        write_yaml(
            theirs.path, {"general": {"language": "en-US"}, "models": {"anthropic": {"secrets": {"api_key": "x"}}}}
        )
        theirs.remove("general.language")
        theirs.remove(API_KEY)
        assert not says(theirs)

    def test_T6_a_link_in_the_files_place_leads_nowhere(self, theirs: SettingsFile, tmp_path: Path) -> None:
        outside = write(tmp_path / "outside.yaml", "a: 1\n")
        theirs.path.symlink_to(outside)
        with pytest.raises(SettingsNotWritten, match="is a link"):
            theirs.set(RETRIES, 3)
        theirs.path.unlink()
        theirs.path.symlink_to(tmp_path / "nothing.yaml")
        with pytest.raises(SettingsNotWritten, match="is a link"):
            theirs.set(RETRIES, 3)
        assert outside.read_text() == "a: 1\n" and not (tmp_path / "nothing.yaml").exists()

    def test_T6_a_linked_halo_folder_leads_nowhere(self, halo_home: HomeLayout, tmp_path: Path) -> None:
        root, outside = tmp_path / "plain", tmp_path / "outside"
        root.mkdir()
        outside.mkdir()
        (root / ".halo").symlink_to(outside)
        with pytest.raises(SettingsNotWritten, match="is a link"):
            SettingsFile(halo_home, NO_ENV, root).set(RETRIES, 3)
        assert list(outside.iterdir()) == []


class TestMasks:
    def test_what_is_shown_is_never_written_over_what_is_there(self, ours: SettingsFile) -> None:
        write(ours.path, COMMENTED)
        for name, value in ((API_KEY, "AK****ST"), ("anthropic.secrets.api_key", "AK****ST"), (API_KEY, "****")):
            with pytest.raises(SettingRefused) as caught:
                ours.set(name, value)
            assert caught.value.code == "setting_masked" and KEY not in caught.value.message
        shown = {"models": {"anthropic": {"secrets": {"api_key": "AK****ST"}}}}
        with pytest.raises(SettingRefused):
            ours.replace_values(shown)
        with pytest.raises(SettingRefused):
            ours.replace_text(yaml.safe_dump(shown))
        assert ours.path.read_text() == COMMENTED

    def test_nor_an_address_or_an_orphan_or_a_list(self, ours: SettingsFile) -> None:
        values = {"models": {"openai": {"endpoint": "https://me:pw@host"}}, "gone": {"params": {"a": ["one", KEY]}}}
        write_yaml(ours.path, values)
        with pytest.raises(SettingRefused):
            ours.set("models.openai.endpoint", "https://****@host")
        with pytest.raises(SettingRefused):
            ours.set("gone.params.a", ["****", "AK****ST"])
        assert says(ours) == values

    def test_the_value_that_is_there_may_be_said_again(self, ours: SettingsFile) -> None:
        write_yaml(ours.path, {"gone": {"params": {"a": "****"}}})
        ours.set("gone.params.a", "****")
        ours.set(API_KEY, KEY)
        ours.set(API_KEY, KEY)
        assert says(ours)["models"]["anthropic"]["secrets"]["api_key"] == KEY


class TestWholeFiles:
    def test_values_replace_values_and_comments_stay(self, ours: SettingsFile) -> None:
        write(ours.path, COMMENTED)
        wanted = {
            "general": {"agent": {"max_retries": 3}, "language": "en-US"},
            "models": yaml.safe_load(COMMENTED)["models"],
        }
        ours.replace_values(wanted)
        after = COMMENTED.replace("tavily: {params: {depth: 2}}\n", "").replace("line\n", "line\n  language: en-US\n")
        assert ours.path.read_text() == after and says(ours) == wanted
        ours.replace_values({})
        assert ours.path.read_text() == "# Our house\n  # later: more\n"

    def test_text_is_written_letter_for_letter(self, ours: SettingsFile) -> None:
        ours.replace_text(COMMENTED)
        assert ours.path.read_text() == COMMENTED

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("a: [", "Line 1 of these settings cannot be read: this is not valid YAML"),
            ("- a", "expected `key: value` lines"),
            ("a: {__proto__: 1}", "`a.__proto__` is not allowed"),
            ("general: {agent: {max_retries: 0}}", "from 1 to 20"),
            ("general: {agent: {max_retrys: 1}}", "Did you mean"),
        ],
    )
    def test_text_that_does_not_hold(self, text: str, sentence: str, ours: SettingsFile) -> None:
        with pytest.raises(HaloError) as caught:
            ours.replace_text(text)
        assert sentence in caught.value.message and caught.value.status in (400, 422)
        assert not ours.path.exists()

    @pytest.mark.parametrize(
        "values", [{"a": {"__proto__": {"x": 1}}}, {"a.constructor": 1}, {"a\n": {"params": {"x": 1}}}, {"": 1}]
    )
    def test_names_that_are_refused(self, values: Any, ours: SettingsFile) -> None:
        with pytest.raises(BadRequest):
            ours.replace_values(values)
        assert not ours.path.exists()

    def test_misspelt_names_that_are_there_may_stay(self, ours: SettingsFile) -> None:
        write_yaml(ours.path, {"general": {"theme": "dark"}})
        ours.replace_values({"general": {"theme": "dark", "language": "en-US"}})
        with pytest.raises(BadRequest):
            ours.replace_values({"general": {"theme": "light"}})
        assert says(ours) == {"general": {"theme": "dark", "language": "en-US"}}

    def test_too_much(self, ours: SettingsFile) -> None:
        with pytest.raises(HaloError):
            ours.replace_text("# " + "x" * (2 * 1024 * 1024))
        assert not ours.path.exists()


class TestTheFile:
    @pytest.mark.parametrize("text", ["general: [", "a: {constructor: 1}", "- a\n", "a: \xff"])
    def test_what_cannot_be_read_is_never_written_over(self, text: str, ours: SettingsFile) -> None:
        data = text.encode("latin-1")
        ours.path.write_bytes(data)
        changes = [
            lambda: ours.set(RETRIES, 3),
            lambda: ours.remove(RETRIES),
            lambda: ours.replace_values({}),
            lambda: ours.replace_text("a: 1"),
        ]
        for change in changes:
            with pytest.raises(Conflict, match="Nothing was changed") as caught:
                change()
            assert caught.value.code == "config_file_invalid" and str(ours.path) in caught.value.message
        assert ours.path.read_bytes() == data

    @pytest.mark.parametrize("text", ["? general\n: {}\n", "general: !!map\n  agent: {}\n", "general: &x\n  a: 1\n"])
    def test_forms_that_cannot_be_changed_are_left_as_they_are_or_changed_rightly(self, text, ours) -> None:
        write(ours.path, text)
        try:
            ours.set(RETRIES, 3)
        except SettingsNotWritten:
            assert ours.path.read_text() == text
        else:
            assert says(ours)["general"]["agent"] == {"max_retries": 3}

    def test_a_single_value_where_a_block_belongs(self, ours: SettingsFile) -> None:
        write(ours.path, "general: 5\n")
        with pytest.raises(SettingsNotWritten, match="`general` holds a single value"):
            ours.set(RETRIES, 3)
        assert ours.path.read_text() == "general: 5\n"

    def test_it_is_its_owners_alone(self, ours: SettingsFile) -> None:
        ours.set(API_KEY, KEY)
        assert ours.path.stat().st_mode & 0o777 == 0o600
        ours.path.chmod(0o644)
        ours.set(RETRIES, 3)
        assert ours.path.stat().st_mode & 0o777 == 0o600

    def test_a_link_of_the_owners_own_stays_one(self, ours: SettingsFile, tmp_path: Path) -> None:
        real = write(tmp_path / "dotfiles" / "halo.yaml", "# mine\n")
        ours.path.symlink_to(real)
        ours.set(RETRIES, 3)
        assert (
            ours.path.is_symlink() and real.read_text().startswith("# mine\n") and "max_retries: 3" in real.read_text()
        )

    def test_a_mark_at_the_beginning_stays(self, ours: SettingsFile) -> None:
        ours.path.write_bytes(b"\xef\xbb\xbfgeneral:\n  language: en-US\n")
        ours.set("general.language", "zh-CN")
        assert ours.path.read_bytes() == b"\xef\xbb\xbfgeneral:\n  language: zh-CN\n"

    def test_a_folder_in_its_place(self, ours: SettingsFile) -> None:
        ours.path.mkdir()
        with pytest.raises(HaloError):
            ours.set(RETRIES, 3)

    def test_a_file_where_the_folder_belongs(self, halo_home: HomeLayout, tmp_path: Path) -> None:
        write(tmp_path / "plain" / ".halo", "")
        with pytest.raises(SettingsNotWritten, match="File exists"):
            SettingsFile(halo_home, NO_ENV, tmp_path / "plain").set(RETRIES, 3)


WRITER = """
import sys
from pathlib import Path
from agents_app.config.settings_write import SettingsFile
from halo_project.layout import HomeLayout
file = SettingsFile(HomeLayout(Path(sys.argv[1])), lambda name: None)
for number in range(25):
    file.set(f"skill.params.{sys.argv[2]}{number}", number)
"""


def test_two_processes_lose_nothing_of_each_other(ours: SettingsFile, halo_home: HomeLayout) -> None:
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", WRITER, str(halo_home.home)]
    running = [subprocess.Popen([*command, name], cwd=root) for name in "ab"]
    for number in range(25):
        ours.set(f"skill.params.c{number}", number)
    assert [each.wait(60) for each in running] == [0, 0]
    assert says(ours) == {"skill": {"params": {f"{name}{number}": number for name in "abc" for number in range(25)}}}


class TestBounds:
    """One request takes seconds at most, whatever the file."""

    def test_T6_a_file_that_is_too_large_is_changed_by_hand(self, halo_home: HomeLayout, workspace: Path) -> None:
        theirs = SettingsFile(halo_home, NO_ENV, workspace)
        text = "".join(f"k{number}: 1\n" for number in range(40_000))
        write(theirs.path, text)
        began = time.perf_counter()
        for change in (
            lambda: theirs.set(RETRIES, 3),
            lambda: theirs.remove("k1"),
            lambda: theirs.replace_text("a: 1"),
        ):
            with pytest.raises(SettingsNotWritten, match=r"larger than 256 KB\. Edit it by hand"):
                change()
        assert time.perf_counter() - began < 2
        assert theirs.path.read_text() == text

    def test_T6_the_largest_that_is_changed(self, halo_home: HomeLayout, workspace: Path) -> None:
        theirs = SettingsFile(halo_home, NO_ENV, workspace)
        write(theirs.path, "".join(f"k{number}: 1\n" for number in range(25_000)))
        began = time.perf_counter()
        theirs.set(RETRIES, 3)
        theirs.remove("k1")
        assert time.perf_counter() - began < 15
        assert "max_retries: 3" in theirs.path.read_text() and "k1:" not in theirs.path.read_text()

    def test_too_many_changes_at_once(self, ours: SettingsFile) -> None:
        with pytest.raises(SettingRefused, match="give the new content of the file as `text`"):
            ours.replace_values({"x": {"params": {f"k{number}": 1 for number in range(10_000)}}})
        assert not ours.path.exists()
        with pytest.raises(SettingRefused, match="larger than 256 KB"):
            ours.replace_text("#" * 300_000)

    def test_T6_a_writer_of_another_file_does_not_wait(self, halo_home: HomeLayout, workspace: Path, ours) -> None:
        with _one_at_a_time(halo_home, workspace):
            writing = threading.Thread(target=lambda: ours.set(RETRIES, 3), daemon=True)
            writing.start()
            writing.join(10)
            assert not writing.is_alive()
        assert "max_retries: 3" in ours.path.read_text()


def test_no_value_in_a_repr(halo_home: HomeLayout, workspace: Path) -> None:
    secret = "AKIAABCDEFGHIJST"
    write_yaml(halo_home.settings_yaml, {"x": {"params": {"key": secret}}})
    write_yaml(WorkspaceLayout(workspace).settings_yaml, {"x": {"params": {"key": secret}}})
    theirs = SettingsFile(halo_home, NO_ENV, workspace)
    with theirs._opened() as (_, rules):
        found = [rules, holding(SettingField("key", ("x", "params", "key")), None, rules.settings)]
    found += [*settings_file._MERGED.values(), Value(secret), Held(secret, "global")]
    assert secret not in repr(found)
