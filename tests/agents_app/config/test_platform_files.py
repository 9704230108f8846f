"""The copies of what comes with Halo in a home: laid, renewed, and nothing of a person's lost or touched."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents_app.config import platform_files
from agents_app.config.agents import list_agents, load_agent
from agents_app.config.bundle import bundle_files, seed_files
from agents_app.config.files import BUNDLED
from agents_app.config.platform_files import refresh_platform_files
from agents_app.config.template_version import NAME, read_template_version
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_agent

AGENT_YAML = "name: Aide\n# Which model.\nmodel: auto\n# How high.\npriority: 1\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "bundle"
    write(root / "agents" / "aide" / "agent.yaml", AGENT_YAML)
    write(root / "agents" / "aide" / "AGENT.md", "one\n")
    write(root / "skills" / "cook" / "SKILL.md", "cook one\n")
    write(root / "skills" / "cook" / "tools" / "cook.py", "print(1)\n").chmod(0o755)
    write(root / "prompts" / "all" / "RULES.md", "rules one\n")
    return root


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != NAME
    }


class Laid:
    """A home that holds version 1 of a bundle."""

    def __init__(self, home: HomeLayout, bundle: Path):
        self.home, self.bundle = home, bundle
        self.place = home.global_dir
        assert self.refresh("1")

    def refresh(self, version: str) -> bool:
        return refresh_platform_files(self.home, bundle=self.bundle, version=version)

    def read(self, name: str) -> str:
        return (self.place / name).read_text()

    def replaced(self) -> dict[str, str]:
        """What was kept, without the folder of its version."""
        return {name.split("/", 1)[1]: text for name, text in tree(self.place / "replaced").items()}


@pytest.fixture
def laid(halo_home: HomeLayout, bundle: Path) -> Laid:
    return Laid(halo_home, bundle)


def test_the_real_files_are_laid_once(halo_home: HomeLayout, workspace: Path) -> None:
    assert refresh_platform_files(halo_home)
    found = tree(halo_home.global_dir)
    laid = {**bundle_files(), **seed_files()}
    assert found.keys() == laid.keys()
    assert all(found[name].encode() == data for name, data in laid.items())
    assert not refresh_platform_files(halo_home)
    listed = list_agents(workspace, halo_home)
    assert {agent.scope for agent in listed} == {"global"} and all(agent.config for agent in listed)


def test_an_unchanged_start_is_cheap(halo_home: HomeLayout) -> None:
    refresh_platform_files(halo_home)
    started = time.perf_counter()
    assert not refresh_platform_files(halo_home)
    assert time.perf_counter() - started < 0.2  # a few milliseconds when measured alone


class TestRenewed:
    def test_when_a_file_moves(self, laid: Laid) -> None:
        write(laid.bundle / "agents" / "aide" / "AGENT.md", "two\n")
        write(laid.bundle / "prompts" / "all" / "MORE.md", "more\n")
        assert laid.refresh("1")
        assert (laid.read("agents/aide/AGENT.md"), laid.read("prompts/all/MORE.md")) == ("two\n", "more\n")
        assert laid.replaced() == {}

    def test_not_while_nothing_moves(self, laid: Laid) -> None:
        write(laid.place / "agents" / "aide" / "AGENT.md", "mine\n")
        assert not laid.refresh("1")
        assert laid.read("agents/aide/AGENT.md") == "mine\n"

    def test_what_a_person_changed_is_kept_aside(self, laid: Laid, caplog: pytest.LogCaptureFixture) -> None:
        write(laid.place / "agents" / "aide" / "AGENT.md", "mine\n")
        write(laid.place / "skills" / "cook" / "SKILL.md", "my cook\n")
        label = read_template_version(laid.place).label
        with caplog.at_level(logging.WARNING):
            laid.refresh("2")
        assert laid.read("agents/aide/AGENT.md") == "one\n"
        assert laid.replaced() == {"agents/aide/AGENT.md": "mine\n", "skills/cook/SKILL.md": "my cook\n"}
        assert str(laid.place / "replaced" / label / "agents" / "aide" / "AGENT.md") in caplog.text
        assert laid.refresh("3") and len(laid.replaced()) == 2  # what Halo wrote itself is not kept

    def test_two_texts_from_one_version_are_both_kept(self, laid: Laid) -> None:
        for text in ("mine\n", "mine again\n"):
            write(laid.place / "agents" / "aide" / "AGENT.md", text)
            (laid.place / NAME).write_text("1.27")
            laid.refresh("2")
        assert laid.replaced() == {"agents/aide/AGENT.md": "mine\n", "agents/aide/AGENT.md.2": "mine again\n"}

    def test_what_is_not_halos_stays(self, laid: Laid) -> None:
        own = {
            "USER.md": "me",
            "INSTRUCTIONS.md": "rules",
            "aliases.yaml": "{}",
            "agents/mine/agent.yaml": "name: M\nmodel: auto\n",
            "agents/aide/notes.md": "notes",
            "skills/mine/SKILL.md": "s",
            "prompts/all/ours.md": "ours",
        }
        for name, text in own.items():
            write(laid.place / name, text)
        before = tree(laid.place)
        laid.refresh("2")
        assert tree(laid.place) == before

    def test_a_script_stays_one(self, laid: Laid) -> None:
        assert os.access(laid.place / "skills" / "cook" / "tools" / "cook.py", os.X_OK)
        assert not os.access(laid.place / "skills" / "cook" / "SKILL.md", os.X_OK)

    def test_a_home_of_1x(self, halo_home: HomeLayout, bundle: Path) -> None:
        (halo_home.global_dir / NAME).write_text("1.27\n")
        write(halo_home.global_agents / "aide" / "AGENT.md", "of 1.x\n")
        write(halo_home.global_agents / "aide" / "agent.yaml", "name: Old\nmodel:\n  provider: openai\ntools: []\n")
        home = Laid(halo_home, bundle)
        assert home.replaced()["agents/aide/AGENT.md"] == "of 1.x\n"
        assert (home.place / "replaced" / "1.27" / "agents" / "aide" / "agent.yaml").is_file()
        assert home.read("agents/aide/agent.yaml") == (
            "name: Aide\nmodel:\n  provider: openai\n# How high.\npriority: 1\n"
        )


OWN_BLOCK = """\
# My reasons,
# in two lines.
model:
  # The proxy.
  provider: openai   # not the other
  id: gpt-x

  endpoint: https://proxy.example/v1
"""


class TestModel:
    def own(self, laid: Laid, text: str) -> None:
        write(laid.place / "agents" / "aide" / "agent.yaml", text)

    def test_a_persons_block_stays_as_it_was_written(self, laid: Laid) -> None:
        self.own(laid, f"name: Aide\n{OWN_BLOCK}# How high.\npriority: 1\n")
        write(laid.bundle / "agents" / "aide" / "agent.yaml", AGENT_YAML.replace("priority: 1", "priority: 7"))
        laid.refresh("2")
        assert laid.read("agents/aide/agent.yaml") == f"name: Aide\n{OWN_BLOCK}# How high.\npriority: 7\n"
        assert laid.replaced() == {}, "nothing is lost, so nothing is kept aside"
        laid.refresh("3")
        assert OWN_BLOCK in laid.read("agents/aide/agent.yaml") and laid.replaced() == {}

    def test_other_changes_beside_it_are_kept_aside(self, laid: Laid) -> None:
        text = f"name: Mine\n{OWN_BLOCK}priority: 1\n"
        self.own(laid, text)
        laid.refresh("2")
        assert laid.read("agents/aide/agent.yaml") == f"name: Aide\n{OWN_BLOCK}# How high.\npriority: 1\n"
        assert laid.replaced() == {"agents/aide/agent.yaml": text}

    def test_the_block_that_came_with_it_is_renewed(self, laid: Laid) -> None:
        write(laid.bundle / "agents" / "aide" / "agent.yaml", AGENT_YAML.replace("model: auto", "model: rehearsal"))
        laid.refresh("1")
        assert "model: rehearsal" in laid.read("agents/aide/agent.yaml")

    @pytest.mark.parametrize("text", ["name: [", "name: X\n", "model: {provider: openai,\nid: x}\n", "\xff"])
    def test_a_file_without_a_sound_block_is_kept_aside(self, laid: Laid, text: str) -> None:
        path = laid.place / "agents" / "aide" / "agent.yaml"
        path.write_bytes(text.encode("latin-1"))
        laid.refresh("2")
        assert path.read_text() == AGENT_YAML
        kept = next((laid.place / "replaced").rglob("agent.yaml"))
        assert kept.read_bytes() == text.encode("latin-1")

    @pytest.mark.parametrize(
        "block",
        [
            "model: rehearsal\n",
            'model: {provider: openai, id: "#x", endpoint: "https://a.example"}\n',
            "model:\n  provider: openai\n  id: x\n  endpoint: https://a.example\n# a word between\n  image: true\n",
            "model: rehearsal",
        ],
    )
    def test_blocks_of_every_kind(self, laid: Laid, block: str) -> None:
        self.own(laid, f"priority: 1\nname: Aide\n{block}")
        laid.refresh("2")
        assert laid.read("agents/aide/agent.yaml") == f"name: Aide\n{block.rstrip()}\n# How high.\npriority: 1\n"


class TestWithdrawn:
    def drop(self, laid: Laid) -> None:
        for name in ("agents/aide/agent.yaml", "agents/aide/AGENT.md", "skills/cook/tools/cook.py"):
            (laid.bundle / name).unlink()

    def test_what_no_longer_comes_with_halo_goes(self, laid: Laid) -> None:
        self.drop(laid)
        laid.refresh("2")
        assert not (laid.place / "agents" / "aide").exists() and (laid.place / "agents").is_dir()
        assert tree(laid.place / "skills") == {"cook/SKILL.md": "cook one\n"}

    def test_but_not_what_was_changed(self, laid: Laid) -> None:
        write(laid.place / "agents" / "aide" / "AGENT.md", "mine\n")
        write(laid.place / "agents" / "aide" / "agent.yaml", AGENT_YAML.replace("auto", "rehearsal"))
        self.drop(laid)
        for version in ("2", "3"):
            laid.refresh(version)
            assert laid.read("agents/aide/AGENT.md") == "mine\n"
            assert "rehearsal" in laid.read("agents/aide/agent.yaml")


class TestSeeds:
    def test_once_and_never_again(self, laid: Laid) -> None:
        write(laid.bundle / "seed" / "aliases.yaml", "a: 1\n")
        laid.refresh("1")
        assert laid.read("aliases.yaml") == "a: 1\n"
        (laid.place / "aliases.yaml").unlink()
        write(laid.bundle / "seed" / "aliases.yaml", "a: 2\n")
        laid.refresh("2")
        assert not (laid.place / "aliases.yaml").exists()

    def test_not_over_what_is_there(self, halo_home: HomeLayout, bundle: Path) -> None:
        write(bundle / "seed" / "aliases.yaml", "a: 1\n")
        write(halo_home.global_dir / "aliases.yaml", "mine\n")
        assert Laid(halo_home, bundle).read("aliases.yaml") == "mine\n"


class TestInTheWay:
    def test_a_place_that_cannot_be_written_is_a_warning_and_tried_again(
        self, halo_home: HomeLayout, bundle: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        halo_home.global_agents.rmdir()
        write(halo_home.global_agents, "a file in the way")
        home = Laid(halo_home, bundle)
        assert "agents" in caplog.text
        assert home.read("skills/cook/SKILL.md") == "cook one\n"
        write(home.place / "skills" / "cook" / "SKILL.md", "mine\n")
        halo_home.global_agents.unlink()
        assert home.refresh("1")
        assert home.read("agents/aide/AGENT.md") == "one\n"
        assert home.read("skills/cook/SKILL.md") == "mine\n", "only what failed is tried again"
        assert not home.refresh("1")

    def test_a_home_without_a_place(self, tmp_path: Path) -> None:
        write(tmp_path / "home", "a file")
        assert refresh_platform_files(HomeLayout(tmp_path / "home"))
        assert load_agent("default", None, HomeLayout(tmp_path / "home")).scope == "bundled"

    def test_links_are_not_followed(self, halo_home: HomeLayout, bundle: Path, tmp_path: Path) -> None:
        elsewhere = write_agent(tmp_path / "elsewhere", agent_md="mine")
        (halo_home.global_agents / "aide").symlink_to(elsewhere)
        (halo_home.global_dir / "skills" / "cook").mkdir(parents=True)
        (halo_home.global_dir / "skills" / "cook" / "SKILL.md").symlink_to(elsewhere / "AGENT.md")
        (halo_home.global_dir / "skills" / "cook" / "tools").symlink_to(elsewhere)
        before = tree(elsewhere)
        home = Laid(halo_home, bundle)
        assert tree(elsewhere) == before
        assert (home.place / "skills" / "cook" / "SKILL.md").is_symlink()

    def test_a_pipe_holds_nothing_up(self, halo_home: HomeLayout, bundle: Path) -> None:
        (halo_home.global_agents / "aide").mkdir()
        os.mkfifo(halo_home.global_agents / "aide" / "AGENT.md")
        assert Laid(halo_home, bundle).read("agents/aide/agent.yaml") == AGENT_YAML


def test_a_kill_at_any_write_leaves_nothing_half_and_loses_nothing(
    halo_home: HomeLayout, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid = Laid(halo_home, bundle)
    real, calls = platform_files.replace_file, 0
    write(laid.bundle / "agents" / "new" / "agent.yaml", AGENT_YAML)
    write(laid.bundle / "agents" / "new" / "AGENT.md", "new\n")
    write(laid.bundle / "agents" / "aide" / "AGENT.md", "two\n")
    write(laid.place / "agents" / "aide" / "AGENT.md", "mine\n")
    kills = 0
    for allowed in range(20):

        def dying(path: Path, chunks, *, budget: int = allowed, **more) -> None:
            nonlocal calls
            if calls >= budget:
                os._exit(9)
            calls += 1
            real(path, chunks, **more)

        calls = 0
        child = os.fork()
        if child == 0:
            monkeypatch.setattr(platform_files, "replace_file", dying)
            laid.refresh("2")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        kills += status != 0
        new = laid.place / "agents" / "new"
        assert not new.exists() or len(list(new.iterdir())) == 2, "a new folder appears complete"
        if laid.read("agents/aide/AGENT.md") != "mine\n":
            assert laid.replaced() == {"agents/aide/AGENT.md": "mine\n"}
        if status == 0:
            break
    assert kills >= 3
    assert laid.read("agents/aide/AGENT.md") == "two\n" and laid.read("agents/new/AGENT.md") == "new\n"
    assert not laid.refresh("2")
    for left in laid.place.glob(".staging-*"):
        os.utime(left, (0, 0))
    laid.refresh("3")
    assert list(laid.place.glob(".staging-*")) == []


_ONE = """
import sys
from pathlib import Path
from agents_app.config.platform_files import refresh_platform_files
from halo_project.layout import HomeLayout
sys.stdin.readline()
refresh_platform_files(HomeLayout(Path(sys.argv[1])), bundle=Path(sys.argv[2]), version="2")
"""


def test_two_processes_at_once_do_no_harm(laid: Laid) -> None:
    for number in range(20):
        write(laid.bundle / "skills" / f"s{number}" / "SKILL.md", f"{number}\n")
    write(laid.bundle / "agents" / "aide" / "AGENT.md", "two\n")
    write(laid.place / "agents" / "aide" / "AGENT.md", "mine\n")
    command = [sys.executable, "-c", _ONE, str(laid.home.home), str(laid.bundle)]
    root = BUNDLED.parent.parent
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True, cwd=root) for _ in range(3)]
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    assert [each.wait(60) for each in running] == [0, 0, 0]
    for each in running:
        assert each.stdin is not None
        each.stdin.close()
    found = tree(laid.place)
    kept = {name: text for name, text in found.items() if name.startswith("replaced/")}
    assert list(kept.values()) == ["mine\n"]
    assert {name: text for name, text in found.items() if name not in kept} == {
        name: data.decode() for name, data in bundle_files(laid.bundle).items()
    }
    assert not laid.refresh("2")
