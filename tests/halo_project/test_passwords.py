"""The one password: from the environment or made once, checked in constant form, changed with consequences."""

import dataclasses
import stat

import pytest
from django.conf import settings as django_settings

from halo_project import passwords
from halo_project.errors import BadRequest, Conflict


@pytest.fixture
def installation(settings, home):
    """Passwords of a fresh home, hashed cheaply."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return home


@pytest.fixture
def from_env(settings, installation):
    settings.HALO = dataclasses.replace(django_settings.HALO, password="from the environment é")


def test_it_is_made_once_and_kept_as_a_hash(installation):
    made = passwords.ensure_password()
    assert made is not None and len(made) >= 16
    assert passwords.ensure_password() is None
    assert made not in installation.password_file.read_text()
    assert stat.S_IMODE(installation.password_file.stat().st_mode) == 0o600
    assert passwords.check_password(made)


@pytest.mark.parametrize("wrong", ["", " ", "x", "x" * 1024, "x" * 100_000, None, 7, "\ud83d"])
def test_a_wrong_one_is_wrong(installation, wrong):
    passwords.ensure_password()
    assert passwords.check_password(wrong) is False


def test_without_any_password_nothing_is_right(installation):
    assert passwords.check_password("") is False
    assert passwords.check_password("anything") is False


def test_setting_one_changes_the_fingerprint_and_what_is_right(installation):
    old = passwords.ensure_password()
    before = passwords.fingerprint()
    assert before == passwords.fingerprint()
    passwords.set_password("a new password")
    assert passwords.fingerprint() != before
    assert passwords.check_password("a new password") and not passwords.check_password(old)


@pytest.mark.parametrize("poor", ["", "1234567", "x" * 1025, "\ud83d" * 9])
def test_a_poor_one_is_refused_and_changes_nothing(installation, poor):
    made = passwords.ensure_password()
    with pytest.raises(BadRequest):
        passwords.set_password(poor)
    assert passwords.check_password(made)


def test_the_one_in_the_environment_rules(installation, from_env):
    assert passwords.ensure_password() is None
    assert not installation.password_file.exists()
    assert passwords.check_password("from the environment é")
    assert not passwords.check_password("from the environment e")
    with pytest.raises(Conflict, match="HALO_PASSWORD"):
        passwords.set_password("another password")


def test_the_fingerprint_depends_on_the_environments_password(settings, installation, from_env):
    before = passwords.fingerprint()
    settings.HALO = dataclasses.replace(django_settings.HALO, password="another")
    assert passwords.fingerprint() != before


def test_production_hashing_is_slow_enough():
    name, iterations, _, _ = passwords.PasswordHasher().encode("p", "salt").split("$")
    assert name == "pbkdf2_sha256" and int(iterations) >= 600_000
