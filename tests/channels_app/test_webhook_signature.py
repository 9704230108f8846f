"""Signatures after the Standard Webhooks specification."""

from datetime import UTC, datetime

import pytest

from channels_app.webhook_signature import signed_headers, signing_secret
from halo_project.errors import ConfigurationError
from halo_project.layout import HomeLayout


def test_the_example_of_the_reference_libraries() -> None:
    """The pair of secret and signature with which the libraries of the specification test themselves."""
    headers = signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_secret_is_made_once_and_private(halo_home: HomeLayout) -> None:
    secret = signing_secret(halo_home)
    path = halo_home.secrets / "webhook-key"
    assert signing_secret(halo_home) == secret == path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600 and secret.startswith("whsec_") and len(secret) == 50


@pytest.mark.parametrize(
    "text", ["whsec_", "whsec_short", "whsec_!!!!", "TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c="]
)
def test_a_file_that_holds_no_key(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        signed_headers(text, "msg_1", datetime.now(UTC), b"{}")
    assert "webhook-key" in refused.value.message
    assert text == "whsec_" or text not in refused.value.message
