"""Fixtures for tests of pages and JSON routes: a known password, a client that is signed in, one that is not."""

from dataclasses import replace

import pytest
from django.test import Client

PASSWORD = "correct horse 9"


@pytest.fixture
def password(settings) -> str:
    """The installation's password for this test, as HALO_PASSWORD would set it: comparing it takes no time."""
    settings.HALO = replace(settings.HALO, password=PASSWORD)
    return PASSWORD


@pytest.fixture
def stranger(db, password: str) -> Client:
    return Client()


@pytest.fixture
def client(db, password: str) -> Client:
    """Signed in through the API, with its cookie alone."""
    signed_in = Client()
    answer = signed_in.post("/api/auth/login", {"password": password}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return signed_in
