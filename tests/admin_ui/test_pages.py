"""The pages as documents: who may see them, what they load, and that nothing in them needs a looser policy."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from channels_app.models import LoginFailure
from halo_project import passwords

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "admin_ui" / "static"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
PASSWORD = "a password for tests"


@pytest.fixture
def person(db) -> Client:
    """A signed-in browser."""
    passwords.set_password(PASSWORD)
    LoginFailure.objects.all().delete()
    client = Client()
    assert client.post("/api/auth/login", {"password": PASSWORD}, content_type="application/json").status_code == 200
    return client


@pytest.mark.parametrize("path", ["/", "/chat", "/chat?workspace=/w&session=s"])
def test_who_is_not_signed_in_is_led_to_the_login_and_back(db, path):
    answer = Client().get(path)
    assert answer.status_code == 302
    target = Client().get(answer["Location"])
    assert answer["Location"].startswith("/login?next=")
    assert f'name="next" value="{path.replace("&", "&amp;")}"' in target.content.decode()


def test_the_page_names_the_default_workspace_and_loads_its_scripts(person):
    html = person.get("/chat").content.decode()
    assert f'data-default-workspace="{settings.HALO.workspace}"' in html
    assert re.search(r'<script type="module" src="/static/[0-9a-f]+/js/main.js">', html)


def test_every_file_a_page_names_is_served(person):
    html = person.get("/").content.decode() + Client().get("/login").content.decode()
    named = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html))
    assert len(named) > 8
    for address in named:
        assert person.get(address).status_code == 200, address


def test_a_login_page_says_what_went_wrong(db):
    passwords.set_password(PASSWORD)
    LoginFailure.objects.all().delete()
    client = Client()
    answer = client.post("/login", {"password": "wrong"})
    html = answer.content.decode()
    assert answer.status_code == 401 and 'role="alert"' in html and 'aria-invalid="true"' in html


def test_the_policy_is_strict(person):
    for path in ("/", "/login"):
        policy = person.get(path)["Content-Security-Policy"]
        assert "default-src 'self'" in policy and "unsafe" not in policy and "*" not in policy
        assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_needs_inline_script_or_style(template):
    html = template.read_text()
    assert not re.search(r"\son[a-z]+\s*=", html) and "<style" not in html and not re.search(r"\sstyle\s*=", html)
    assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", html))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_control_has_a_name(template):
    html = template.read_text()
    for tag, inside in re.findall(r"<button([^>]*)>(.*?)</button>", html, re.DOTALL):
        words = re.sub(r"<[^>]*>|\{[%{].*?[%}]\}", "", inside).strip()
        assert words or "aria-label" in tag, inside


def test_nothing_comes_from_another_host():
    for path in [*TEMPLATES, *STATIC.rglob("*.js"), *STATIC.rglob("*.css")]:
        addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", path.read_text()))
        addresses.discard("http://www.w3.org")  # the name of SVG's namespace, which nobody fetches
        assert not addresses, f"{path.name}: {addresses}"


def test_every_import_of_a_script_exists():
    for path in STATIC.rglob("*.js"):
        for name in re.findall(r'from "\./([^"]+)"', path.read_text()):
            assert (path.parent / name).is_file(), f"{path.name} imports {name}"


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def colour_sets() -> list[dict[str, str]]:
    css = (STATIC / "css" / "tokens.css").read_text()
    return [
        dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block)) for block in re.split(r"  color-scheme:", css)[1:]
    ]


def test_text_has_enough_contrast_in_every_set_of_colours():
    sets = colour_sets()
    assert len(sets) == 3 and sets[1] == sets[2], "the dark set is written twice and must be the same"
    for colours in sets:
        backgrounds = ("page", "side", "soft", "softer", "raised", "accent-soft")
        for ink in ("ink", "ink-2", "muted"):
            for background in backgrounds:
                assert contrast(colours[ink], colours[background]) >= 4.5, (ink, background)
        for ink in ("accent", "warn", "error", *(name for name in colours if name.startswith("hl-"))):
            for background in ("page", "softer", "raised"):
                assert contrast(colours[ink], colours[background]) >= 4.5, (ink, background)
        assert contrast(colours["accent-ink"], colours["accent"]) >= 4.5
        assert contrast(colours["error"], colours["error-soft"]) >= 4.5
        assert contrast(colours["line-strong"], colours["raised"]) >= 3  # the border of a field


def test_many_texts_become_html_in_one_request(person):
    answer = person.post("/api/markdown", {"texts": ["**a**", "", " b "]}, content_type="application/json")
    assert answer.json() == {"html": ["<p><strong>a</strong></p>\n", "", "<p>b</p>\n"]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"texts": "a"},
        {"texts": [1, {}]},
        {"texts": ["a"] * 201},
        {"texts": ["x" * 200_001]},
        {"texts": ["x" * 199_000] * 11},
    ],
)
def test_what_is_over_the_bounds_is_refused(person, body):
    answer = person.post("/api/markdown", json.dumps(body), content_type="application/json")
    assert answer.status_code == 400 and answer.json()["error"]


def test_markdown_is_for_who_is_signed_in(db):
    answer = Client().post("/api/markdown", {"texts": ["a"]}, content_type="application/json")
    assert answer.status_code == 401


def test_the_banner_shows_only_without_a_key(person, monkeypatch):
    assert "data-rehearsal-banner" in person.get("/").content.decode()
    settings.HALO_HOME.settings_yaml.write_text("models:\n  anthropic:\n    secrets:\n      api_key: sk-x\n")
    try:
        assert "data-rehearsal-banner" not in person.get("/").content.decode()
    finally:
        settings.HALO_HOME.settings_yaml.unlink()


def test_signing_out_needs_the_form(person):
    html = person.get("/").content.decode()
    assert '<form method="post" action="/logout">' in html and "csrfmiddlewaretoken" in html
    assert person.get("/logout").status_code == 405
