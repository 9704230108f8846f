"""docs/providers.md: its tables are those of the code, and its example row is installed and used."""

import re
from pathlib import Path

import yaml

from agents_app.config.models_install import install_models
from agents_app.config.registry import load_registry
from agents_app.config.registry_row import RUNTIMES
from agents_app.doctor import check_providers
from agents_app.runtimes.quirks import CHOICES, FLAGS
from agents_app.runtimes.registry import close_clients
from halo_project.layout import HomeLayout
from tests.support.model_server import ModelServer
from tests.support.runtime_calls import bundled

DOCUMENT = (Path(__file__).resolve().parents[1] / "docs" / "providers.md").read_text(encoding="utf-8")
ROW = next(block for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL) if block.startswith("id: acme"))


def table(heading: str) -> list[list[str]]:
    part = DOCUMENT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.split("\n") if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_providers_are_those_that_come_with_it() -> None:
    rows = {row[0]: row for row in table("Which come with it")}
    assert {name.strip("`") for name in rows} == set(bundled().providers)
    for provider in bundled().providers.values():
        _, _, runtime, key, model = rows[f"`{provider.id}`"]
        assert (runtime, model) == (f"`{provider.runtime}`", f"`{provider.default_model_id}`")
        for secret in provider.secrets:
            assert secret.default.strip("<>") in key


def test_every_quirk_is_told_with_its_values() -> None:
    told = {row[0].strip("`"): row[1] for row in table("Quirks")}
    assert {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name) for name in told} == {*FLAGS, *CHOICES}
    for name, values in told.items():
        allowed = CHOICES.get(re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name), ("true",))
        assert re.findall(r"[\w]+", values) == list(allowed)


async def test_the_example_is_installed_and_answers(tmp_path: Path) -> None:
    home, folder = HomeLayout(tmp_path / "home"), tmp_path / "rows"
    folder.mkdir()
    home.global_dir.mkdir(parents=True)
    with ModelServer() as server:
        (folder / "acme.yaml").write_text(ROW.replace("https://api.acme.example/v1", server.chat_url))
        assert install_models(folder, home, consent=False).needs_consent
        assert "acme" not in load_registry(home).providers
        install_models(folder, home, consent=True)
        found = await check_providers(home, {"ACME_API_KEY": "k"}.get, ["acme"])
        await close_clients()
        assert [check.verdict for check in found.checks] == ["ok"], found
        assert "max_completion_tokens" in server.requests[0].body
    assert all(runtime in ROW for runtime in RUNTIMES), "the comment lists them all"


def test_the_other_examples_are_yaml() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(blocks) == 3 and all(isinstance(yaml.safe_load(block), dict) for block in blocks)
