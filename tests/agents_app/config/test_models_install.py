"""Provider rows from a folder: what becomes of each file, what needs consent, and what is written."""

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents_app.config.endpoint_changes import Change
from agents_app.config.errors import ModelsInstallFailed
from agents_app.config.files import BUNDLED, MAX_FILE_BYTES
from agents_app.config.models_install import InstallPlan, Outcome, PlannedRow, install_models, plan_install
from agents_app.config.registry import load_registry
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_yaml

A, B, C = "https://a.example/v1", "https://b.example/v1", "https://c.example/v1"
ROW: dict[str, Any] = {
    "id": "acme",
    "runtime": "openai-chat",
    "revision": 2,
    "defaultEndpoint": A,
    "endpointPresets": [A, B],
    "secrets": [{"key": "api_key", "default": "<<ACME_KEY>>"}],
    "models": [{"id": "m", "endpoints": [A]}, {"id": "n"}],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def offer(folder: Path, name: str = "acme", **changes: Any) -> Path:
    """A row in `<name>.yaml`; None leaves a field out."""
    row = {key: value for key, value in ({**ROW, "id": name} | changes).items() if value is not None}
    return write_yaml(folder / f"{name}.yaml", row)


def only(plan: InstallPlan) -> PlannedRow:
    (row,) = plan.rows
    return row


def installed(home: HomeLayout) -> dict[str, bytes]:
    """Every file below models.d, leftovers included."""
    return {path.name: path.read_bytes() for path in home.installed_models.glob("*")}


class TestOutcomes:
    def test_a_new_provider_is_written_as_it_is(self, source: Path, halo_home: HomeLayout) -> None:
        data = b"\xef\xbb\xbf# a comment\r\nid: acme\r\nruntime: openai-chat\r\nrevision: 1\r\n"
        (source / "acme.yaml").write_bytes(data)
        row = only(install_models(source, halo_home, consent=True))
        assert (row.outcome, row.revision, row.current_revision) == (Outcome.NEW, 1, None)
        assert installed(halo_home) == {"acme.yaml": data}
        assert load_registry(halo_home).get("acme").path == halo_home.installed_models / "acme.yaml"

    @pytest.mark.parametrize(
        ("place", "revision", "outcome"),
        [
            ("models.d", 1, Outcome.UPDATE),
            ("models.d", 2, Outcome.UPDATE),  # other content of the same revision: the installed copy is in effect
            ("models.d", 3, Outcome.SKIPPED),
            ("models", 1, Outcome.UPDATE),
            ("models", 3, Outcome.SKIPPED),
        ],
    )
    def test_against_the_copy_in_effect(self, place, revision, outcome, source: Path, halo_home: HomeLayout) -> None:
        offer(halo_home.global_dir / place, revision=revision, displayName="Before")
        data = offer(source).read_bytes()
        before = installed(halo_home)
        row = only(install_models(source, halo_home, consent=False))
        assert (row.outcome, row.revision, row.current_revision) == (outcome, 2, revision)
        written = outcome is Outcome.UPDATE
        assert installed(halo_home) == ({"acme.yaml": data} if written else before)
        assert load_registry(halo_home).get("acme").display_name == ("acme" if written else "Before")

    def test_an_identical_one_is_up_to_date(self, source: Path, halo_home: HomeLayout) -> None:
        (source / "openai.yaml").write_bytes((BUNDLED / "models" / "openai.yaml").read_bytes())
        assert only(install_models(source, halo_home, consent=True)).outcome is Outcome.UP_TO_DATE
        assert installed(halo_home) == {}
        (source / "openai.yaml").unlink()
        offer(source)
        install_models(source, halo_home, consent=True)
        assert only(install_models(source, halo_home, consent=False)).outcome is Outcome.UP_TO_DATE

    def test_a_broken_installed_copy_is_replaced(self, source: Path, halo_home: HomeLayout) -> None:
        write(halo_home.installed_models / "acme.yaml", "id: [")
        offer(source)
        assert only(install_models(source, halo_home, consent=True)).outcome is Outcome.NEW
        assert load_registry(halo_home).problems == {}

    def test_a_link_in_its_place_is_replaced_and_not_followed(self, source: Path, halo_home: HomeLayout) -> None:
        theirs = write(source.parent / "theirs.yaml", "untouched")
        halo_home.installed_models.mkdir()
        (halo_home.installed_models / "acme.yaml").symlink_to(theirs)
        data = offer(source).read_bytes()
        install_models(source, halo_home, consent=True)
        assert theirs.read_text() == "untouched"
        assert installed(halo_home) == {"acme.yaml": data}
        assert not (halo_home.installed_models / "acme.yaml").is_symlink()


REFUSED_ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("acme", {"runtime": "telepathy"}, "`runtime` is 'telepathy'; this Halo speaks anthropic-messages, "),
    ("acme", {"runtime": None}, "`runtime` must be the wire protocol"),
    ("acme", {"revision": None}, "`revision` is missing"),
    ("acme", {"revision": "two"}, "`revision` must be a whole number"),
    ("acme", {"secrets": [{"key": "api_key", "default": "sk-real"}]}, "`secrets[0].default` must be empty or the name"),
    ("acme", {"defaultEndpoint": "file:///etc"}, "`defaultEndpoint` must be an address"),
    ("acme", {"id": "other"}, "`id` must be the same as the file's name (acme)"),
    ("acme", {"id": "../x"}, "`id` must be the same as the file's name (acme)"),
    ("acme", {"id": None}, "`id` is missing"),
    ("two words", {}, "`id` must be letters, digits"),
    ("x\x1b[31m", {}, "`id` must be letters, digits"),
    ("auto", {}, "auto and rehearsal have a meaning"),
    ("rehearsal", {}, "auto and rehearsal have a meaning"),
]


class TestRefusals:
    @pytest.mark.parametrize(("name", "changes", "sentence"), REFUSED_ROWS)
    def test_rows(self, name: str, changes: dict[str, Any], sentence: str, source: Path, halo_home: HomeLayout) -> None:
        path = offer(source, name, **changes)
        row = only(install_models(source, halo_home, consent=True))
        assert (row.provider_id, row.outcome) == (name, Outcome.REFUSED)
        assert row.reason.startswith(str(path)) and sentence in row.reason
        assert "sk-real" not in row.reason
        assert installed(halo_home) == {}

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (b"id: [", "line 1: this is not valid YAML"),
            (b"- a\n- b\n", "expected `key: value` lines"),
            (b"", "`id` is missing"),
            (b"id: acme\ndisplayName: caf\xe9\n", "line 2: this file is not UTF-8 text"),
            (b"id: &a acme\nruntime: *a\n", "YAML aliases"),
            (b"id: acme\n" + b"#" * MAX_FILE_BYTES, "larger than 2 MB"),
        ],
    )
    def test_contents(self, data: bytes, sentence: str, source: Path, halo_home: HomeLayout) -> None:
        (source / "acme.yaml").write_bytes(data)
        row = only(install_models(source, halo_home, consent=True))
        assert row.outcome is Outcome.REFUSED and sentence in row.reason
        assert installed(halo_home) == {}

    @pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
    def test_what_is_no_plain_file(self, kind: str, source: Path, halo_home: HomeLayout) -> None:
        path = source / "acme.yaml"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(offer(source.parent) if kind == "link" else source / "nothing")
        row = only(install_models(source, halo_home, consent=True))
        assert row.outcome is Outcome.REFUSED and "plain file" in row.reason
        assert installed(halo_home) == {}

    def test_one_refusal_leaves_the_others(self, source: Path, halo_home: HomeLayout) -> None:
        offer(source, "good")
        offer(source, "bad", revision=None)
        write_yaml(source / "twin.yaml", {**ROW, "id": "good", "revision": 9})
        plan = install_models(source, halo_home, consent=True)
        assert plan.ids(Outcome.REFUSED) == ["bad", "twin"]
        assert set(installed(halo_home)) == {"good.yaml"}
        assert load_registry(halo_home).get("good").revision == 2


def change(field: str, before: str | None, after: str | None, needs_consent: bool) -> Change:
    return Change(field, before, after, needs_consent)


def models(**endpoints: list[str]) -> list[dict[str, Any]]:
    return [{"id": name, "endpoints": urls} for name, urls in endpoints.items()]


CHANGES: list[tuple[dict[str, Any], list[Change]]] = [
    ({}, []),
    ({"displayName": "Other", "models": [*ROW["models"], {"id": "o"}]}, []),
    ({"endpointPresets": [B, A]}, []),
    ({"endpointPresets": [f"{A}/", B]}, []),
    ({"defaultEndpoint": B}, [change("defaultEndpoint", A, B, True)]),
    ({"defaultEndpoint": None}, [change("defaultEndpoint", A, None, True)]),
    ({"endpointPresets": [A, B, C]}, [change("endpointPresets", None, C, True)]),
    ({"endpointPresets": [A]}, [change("endpointPresets", B, None, True)]),
    ({"models": models(m=[A, C])}, [change("models[m].endpoints", None, C, True)]),
    ({"models": models(m=[A], n=[C])}, [change("models[n].endpoints", None, C, True)]),
    ({"models": models(m=[A], o=[C])}, [change("models[o].endpoints", None, C, True)]),
    ({"models": models(m=[A, B])}, [change("models[m].endpoints", None, B, False)]),
    ({"models": models(n=[A], m=[A])}, [change("models[n].endpoints", None, A, False)]),
    ({"models": [{"id": "m"}]}, [change("models[m].endpoints", A, None, False)]),
    ({"models": []}, [change("models[m].endpoints", A, None, False)]),
    ({"models": [*models(m=[A]), *models(m=[C])]}, [change("models[m].endpoints", None, C, True)]),
    (
        {"secrets": [{"key": "api_key", "default": "<<OTHER_KEY>>"}]},
        [
            change("secrets[].default", None, "api_key: <<OTHER_KEY>>", True),
            change("secrets[].default", "api_key: <<ACME_KEY>>", None, False),
        ],
    ),
    ({"runtime": "openai-responses"}, [change("runtime", "openai-chat", "openai-responses", True)]),
    ({"quirks": {"awsSignature": True}}, [change("quirks.awsSignature", None, "true", True)]),
    ({"secrets": []}, [change("secrets[].default", "api_key: <<ACME_KEY>>", None, False)]),
]


class TestConsent:
    @pytest.mark.parametrize(("changes", "expected"), CHANGES)
    def test_what_changes_and_what_needs_it(self, changes, expected, source: Path, halo_home: HomeLayout) -> None:
        offer(halo_home.installed_models)
        before = installed(halo_home)
        data = offer(source, **{"revision": 3, **changes}).read_bytes()
        row = only(install_models(source, halo_home, consent=False))
        assert (row.outcome, list(row.changes)) == (Outcome.UPDATE, expected)
        needed = any(each.needs_consent for each in expected)
        assert row.needs_consent is needed
        assert installed(halo_home) == (before if needed else {"acme.yaml": data})
        install_models(source, halo_home, consent=True)
        assert installed(halo_home) == {"acme.yaml": data}

    def test_a_url_that_two_models_gain_is_new_for_both(self, source: Path, halo_home: HomeLayout) -> None:
        offer(halo_home.installed_models)
        offer(source, revision=3, models=models(m=[A, C], n=[C]))
        assert [each.needs_consent for each in only(plan_install(source, halo_home)).changes] == [True, True]

    def test_a_new_provider_needs_it_even_without_an_address(self, source: Path, halo_home: HomeLayout) -> None:
        offer(source, defaultEndpoint=None, endpointPresets=None, secrets=None, models=None)
        plan = install_models(source, halo_home, consent=False)
        assert plan.needs_consent and only(plan).changes == ()
        assert not halo_home.installed_models.exists()

    def test_a_new_provider_shows_every_address_and_key(self, source: Path, halo_home: HomeLayout) -> None:
        offer(source)
        changes = only(plan_install(source, halo_home)).changes
        assert [(each.field, each.after) for each in changes] == [
            ("defaultEndpoint", A),
            ("endpointPresets", A),
            ("endpointPresets", B),
            ("models[m].endpoints", A),
            ("secrets[].default", "api_key: <<ACME_KEY>>"),
        ]
        assert all(each.needs_consent and each.before is None for each in changes)

    def test_one_that_needs_it_holds_all_back(self, source: Path, halo_home: HomeLayout) -> None:
        offer(halo_home.installed_models, "calm")
        before = installed(halo_home)
        offer(source, "calm", revision=3)
        offer(source, "zeal")
        assert install_models(source, halo_home, consent=False).ids(Outcome.NEW, Outcome.UPDATE) == ["calm", "zeal"]
        assert installed(halo_home) == before

    def test_what_is_not_written_needs_none(self, source: Path, halo_home: HomeLayout) -> None:
        offer(halo_home.installed_models, revision=9)
        offer(source, defaultEndpoint=C)
        offer(source, "bad", revision=None)
        plan = install_models(source, halo_home, consent=False)
        assert plan.ids(Outcome.SKIPPED, Outcome.REFUSED) == ["acme", "bad"] and not plan.needs_consent


class TestFailures:
    def test_no_such_folder_a_file_and_an_empty_one(self, source: Path, halo_home: HomeLayout) -> None:
        (source / "acme.yml").touch()
        (source / "._acme.yaml").touch()
        (source / "...yaml").touch()  # its stem is `..`
        for folder, sentence in (
            (source / "nowhere", "cannot be read (No such file or directory)"),
            (source / "acme.yml", "cannot be read (Not a directory)"),
            (source, "There is no .yaml file"),
        ):
            with pytest.raises(ModelsInstallFailed) as caught:
                install_models(folder, halo_home, consent=True)
            assert sentence in caught.value.message and str(folder) in caught.value.message

    def test_what_cannot_be_written_is_named_with_what_was(self, source: Path, halo_home: HomeLayout) -> None:
        (halo_home.installed_models / "beta.yaml").mkdir(parents=True)
        for name in ("alpha", "beta", "gamma"):
            offer(source, name)
        with pytest.raises(ModelsInstallFailed, match=r"beta\.yaml cannot be written .* before it: alpha\."):
            install_models(source, halo_home, consent=True)
        assert sorted(path.name for path in halo_home.installed_models.iterdir()) == ["alpha.yaml", "beta.yaml"]

    def test_a_home_without_its_folder(self, source: Path, tmp_path: Path) -> None:
        offer(source)
        with pytest.raises(ModelsInstallFailed, match="global cannot be used"):
            install_models(source, HomeLayout(tmp_path / "none"), consent=True)


class TestOthers:
    def test_it_waits_for_another_install_and_sees_what_that_wrote(self, source: Path, halo_home: HomeLayout) -> None:
        offer(source, revision=3)
        plans: list[InstallPlan] = []
        thread = threading.Thread(target=lambda: plans.append(install_models(source, halo_home, consent=True)))
        descriptor = os.open(halo_home.global_dir, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            thread.start()
            thread.join(0.3)
            assert plans == [] and installed(halo_home) == {}
            newer = offer(halo_home.installed_models, revision=5).read_bytes()
        finally:
            os.close(descriptor)
        thread.join(30)
        assert only(plans[0]).outcome is Outcome.SKIPPED
        assert installed(halo_home) == {"acme.yaml": newer}

    def test_a_process_that_has_read_the_registry_sees_the_update(self, source: Path, halo_home: HomeLayout) -> None:
        """Also one of the same length: what was remembered is not what is in place now."""
        path = offer(halo_home.installed_models, displayName="One")
        os.utime(path, (time.time() - 60, time.time() - 60))
        os.utime(halo_home.installed_models, (time.time() - 60, time.time() - 60))
        remembered = load_registry(halo_home).get("acme")
        assert load_registry(halo_home).get("acme") is remembered
        offer(source, revision=3, displayName="Two")
        install_models(source, halo_home, consent=False)
        assert load_registry(halo_home).get("acme").display_name == "Two"
        assert yaml.safe_load(path.read_bytes())["revision"] == 3
