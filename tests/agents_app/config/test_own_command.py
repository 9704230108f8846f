"""The words that run this installation's own command work as they stand, and are filled into skills and prompts."""

import subprocess
import sys
from pathlib import Path

from agents_app.config.own_command import halo_command, installation_names
from agents_app.config.prompt import join_sections, prompt_sections
from agents_app.config.skills import load_skill
from halo_project.clock import utcnow
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import agent, write_skill
from tests.agents_app.config.test_skill_text import read
from tests.support.halo_process import clean_environment


def test_the_script_beside_the_python_that_runs_halo(tmp_path: Path) -> None:
    python = tmp_path / "my python" / "python3"
    python.parent.mkdir()
    halo = python.with_name("halo")
    halo.write_text('#!/bin/sh\necho "$HALO_HOME: $*"\n')
    halo.chmod(0o755)
    command = halo_command(tmp_path / "my home", str(python))
    done = subprocess.run(f"{command} models list", shell=True, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{tmp_path / 'my home'}: models list\n"


def test_without_a_script_the_manage_py_of_this_copy(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    command = halo_command(tmp_path / "home", str(python))
    env = clean_environment()
    done = subprocess.run(
        f"{command} skills --json", shell=True, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=env
    )
    assert done.returncode == 0, done.stderr
    assert '"skills"' in done.stdout


def test_skills_and_agents_may_name_them(halo_home: HomeLayout, workspace: Path) -> None:
    write_skill(halo_home.global_skills / "web", "In {{halo_home}} run {{halo_command}} skills.")
    expected = f"In {halo_home.home} run {installation_names(halo_home)['halo_command']} skills."
    assert load_skill("web", workspace, halo_home) and expected in read("web", halo_home, workspace)
    aide = agent(agent_md="In {{halo_home}} run {{halo_command}} skills.")
    assert expected in join_sections(prompt_sections(aide, workspace, halo_home, root=True, tools=(), now=utcnow()))
