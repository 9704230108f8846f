"""`halo models list` and `halo models install`: what they print, and how they end."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from halo_project.env import read_env
from halo_project.errors import HaloError
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write_yaml
from tests.support.halo_process import ROOT, clean_environment

HALO = [sys.executable, "-c", "from halo_project.console import main; main()"]
ADDRESS = "https://acme.example/v1"


@pytest.fixture
def home(settings, home: HomeLayout) -> HomeLayout:
    """The HALO_HOME of the settings, with one key in the environment."""
    settings.HALO = read_env({"HALO_HOME": str(home.home), "ACME_KEY": "sk-never-shown"})
    return home


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


def offer(folder: Path, name: str = "acme", **changes: Any) -> Path:
    row = {
        "id": name,
        "displayName": "Acme",
        "runtime": "openai-chat",
        "revision": 1,
        "defaultEndpoint": ADDRESS,
        "defaultModelId": "rocket",
        "secrets": [{"key": "api_key", "default": "<<ACME_KEY>>"}],
        "models": [{"id": "rocket", "contextWindow": 5000, "maxContextWindow": 9000, "maxOutputTokens": 1000}],
    }
    return write_yaml(folder / f"{name}.yaml", row | changes)


def run(*arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code and the lines of both outputs."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("models", *arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    return code, out.getvalue().split("\n")[:-1], err.getvalue().split("\n")[:-1]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


@pytest.mark.usefixtures("home")
class TestList:
    def test_the_table(self, home: HomeLayout) -> None:
        offer(home.installed_models)
        offer(home.global_models, "open", secrets=[], models=[], defaultModelId=None)
        code, out, err = run("list")
        assert (code, err) == (0, [])
        assert cells(out[0]) == ["provider", "name", "protocol", "revision", "from", "key", "default model", "models"]
        rows = {cells(line)[0]: cells(line)[1:] for line in out[1:]}
        assert list(rows)[:2] == ["anthropic", "openai"]
        assert rows["acme"] == ["Acme", "openai-chat", "1", "models.d/acme.yaml", "set: ACME_KEY", "rocket", "1"]
        assert rows["open"] == ["Acme", "openai-chat", "1", "models/open.yaml", "not needed", "-", "0"]
        assert rows["aws-bedrock-mantle"][4] == "an account"
        assert rows["openai"][3:5] == ["bundled", "missing: OPENAI_API_KEY"]

    def test_a_provider_with_its_models(self, home: HomeLayout) -> None:
        offer(home.installed_models)
        _, out, _ = run("list", "acme")
        assert [cells(line)[0] for line in out if line][:2] == ["provider", "acme"]
        assert out[2:4] == ["", "acme"]
        assert [cells(line) for line in out[4:]] == [
            ["endpoint https://acme.example/v1"],
            ["model", "context window", "max output", "image", "thinking"],
            ["rocket", "5,000 (up to 9,000)", "1,000", "yes", "-"],
        ]
        with pytest.raises(HaloError, match="There is no provider 'nobody'"):
            run("list", "nobody")

    def test_verbose_has_the_models_of_all(self) -> None:
        assert not any("claude" in line and "yes" in line for line in run("list")[1])
        assert any(cells(line)[0].startswith("claude") and "yes" in line for line in run("list", "-v")[1] if line)

    def test_problems_are_sentences_below_the_table(self, home: HomeLayout) -> None:
        broken = offer(home.installed_models, "broken", defaultEndpoint="nonsense")
        future = offer(home.installed_models, "future", runtime="telepathy")
        code, out, _ = run("list")
        assert code == 0
        start = out.index("") + 1
        assert out[start].startswith(f"problem {broken}: `defaultEndpoint` must be")
        assert out[start + 1].startswith(f"problem {future}: `runtime` is 'telepathy'")
        assert not any(line.startswith("problem") for line in run("list", "openai")[1])

    def test_json(self, home: HomeLayout) -> None:
        offer(home.installed_models)
        code, out, _ = run("list", "acme", "openai", "--json")
        acme, openai = json.loads("\n".join(out))["providers"]
        model = {"id": "rocket", "displayName": "rocket", "contextWindow": 5000, "maxContextWindow": 9000}
        assert code == 0 and acme == {
            "id": "acme",
            "displayName": "Acme",
            "runtime": "openai-chat",
            "revision": 1,
            "source": "models.d/acme.yaml",
            "key": "set",
            "keySource": "ACME_KEY",
            "defaultModelId": "rocket",
            "defaultEndpoint": "https://acme.example/v1",
            "endpointPresets": [],
            "models": [{**model, "maxOutputTokens": 1000, "image": True, "thinking": None}],
        }
        assert (openai["key"], openai["keySource"]) == ("missing", "OPENAI_API_KEY")
        assert json.loads("\n".join(run("list", "--json")[1]))["problems"] == []

    def test_no_key_is_shown(self, home: HomeLayout) -> None:
        offer(home.installed_models)
        written = {"models": {"openai": {"secrets": {"api_key": "sk-typed"}}, "kimi": {"secrets": {"api_key": "a b"}}}}
        write_yaml(home.settings_yaml, written)
        for arguments in ([], ["-v"], ["--json"]):
            text = "\n".join(run("list", *arguments)[1])
            assert "acme" in text and "sk-" not in text and "a b" not in text
        keys = {cells(line)[0]: cells(line)[5] for line in run("list")[1][1:]}
        assert (keys["acme"], keys["openai"], keys["kimi"]) == (
            "set: ACME_KEY",
            "set: models.openai.secrets.api_key",
            "unusable: KIMI_API_KEY",
        )

    def test_names_cannot_steer_the_terminal(self, home: HomeLayout) -> None:
        offer(home.installed_models, displayName="Ac\x1b[31mme")
        assert any("Ac\\x1b[31mme" in line for line in run("list")[1])


@pytest.mark.usefixtures("home")
class TestInstall:
    def test_first_it_asks_and_then_it_does(self, source: Path, home: HomeLayout) -> None:
        offer(source)
        offer(source, "bad", revision=None)
        lines = [
            "new acme: revision 1",
            f"  ! defaultEndpoint gains {ADDRESS}",
            "  ! secrets[].default gains api_key: <<ACME_KEY>>",
            f"refused bad: {source}/bad.yaml: `revision` is missing; it must be a whole number.",
        ]
        counts = "1 (acme), up to date 0, skipped 0, refused 1 (bad)"
        code, out, err = run("install", str(source))
        assert (code, out) == (3, [*lines, f"Nothing was written. to install {counts}"])
        assert len(err) == 1 and "--yes" in err[0]
        assert not home.installed_models.exists()
        assert run("install", str(source), "--yes") == (0, [*lines, f"installed {counts}"], [])
        assert [path.name for path in home.installed_models.iterdir()] == ["acme.yaml"]

    def test_later_it_says_what_moves(self, source: Path, home: HomeLayout) -> None:
        offer(home.installed_models)
        offer(home.installed_models, "old", revision=5)
        offer(source, revision=2, defaultEndpoint="https://new.example", models=[{"id": "m", "endpoints": [ADDRESS]}])
        offer(source, "old")
        assert run("install", "--yes", str(source)) == (
            0,
            [
                "update acme: revision 2, in effect 1",
                f"  ! defaultEndpoint was {ADDRESS}, becomes https://new.example",
                f"    models[m].endpoints gains {ADDRESS}",
                "skipped old: revision 1, in effect 5",
                "installed 1 (acme), up to date 0, skipped 1 (old), refused 0",
            ],
            [],
        )
        assert run("install", str(source))[:2] == (
            0,
            [
                "up to date acme: revision 2, in effect 2",
                "skipped old: revision 1, in effect 5",
                "installed 0, up to date 1 (acme), skipped 1 (old), refused 0",
            ],
        )

    def test_names_cannot_steer_the_terminal(self, source: Path) -> None:
        offer(source, "x\x1b[31m")
        out = run("install", str(source))[1]
        assert len(out) == 2 and all("x\\x1b[31m" in line and "\x1b" not in line for line in out)

    def test_missing_words(self) -> None:
        for words in ([], ["install"], ["remove"]):
            with pytest.raises(CommandError):
                call_command("models", *words)


def test_as_a_program_the_exit_codes_are_0_1_and_3(source: Path, tmp_path: Path) -> None:
    environment = clean_environment(HALO_HOME=str(tmp_path / "fresh"))

    def halo(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([*HALO, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert halo("models", "install", str(source)) == (
        1, "", f"halo: {source} cannot be read (No such file or directory).\n",
    )  # fmt: skip
    offer(source)
    code, out, err = halo("models", "install", str(source))
    assert code == 3 and "Nothing was written" in out and "--yes" in err
    code, out, err = halo("models", "install", str(source), "--yes")
    assert (code, err) == (0, "") and out.endswith("installed 1 (acme), up to date 0, skipped 0, refused 0\n")
    code, out, err = halo("models", "list", "acme", "--json")
    assert (code, err) == (0, "") and json.loads(out)["providers"][0]["source"] == "models.d/acme.yaml"
    assert re.search(r"^  models +List model providers", halo("--help")[1], re.MULTILINE)
