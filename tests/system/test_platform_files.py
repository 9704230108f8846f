"""What comes with Halo in the home of a running one, over an update: renewed, and nothing of a person's lost."""

import json

from agents_app.config.template_version import NAME
from tests.support.halo_process import HaloFactory


def test_an_update_renews_the_copies_and_keeps_what_is_a_persons(start_halo: HaloFactory) -> None:
    halo = start_halo()
    place = halo.home.global_dir
    halo.wait_for(lambda: (place / NAME).is_file())
    yaml, text = place / "agents" / "executor" / "agent.yaml", place / "agents" / "executor" / "AGENT.md"
    bundled = text.read_text()
    yaml.write_text(yaml.read_text().replace("model: auto", "model: rehearsal  # mine"))
    text.write_text("Mine.\n")
    assert halo.stop() == 0

    stamp = json.loads((place / NAME).read_text())
    (place / NAME).write_text(json.dumps({**stamp, "version": "2.0.0"}))
    halo = start_halo(HALO_HOME=str(halo.home.home))
    halo.wait_for(lambda: text.read_text() == bundled)
    assert "model: rehearsal  # mine\n" in yaml.read_text()
    (kept,) = (place / "replaced").rglob("*.md")
    assert kept.read_text() == "Mine.\n" and kept.relative_to(place / "replaced").parts[0].startswith("2.0.0-")
    halo.wait_for(lambda: str(kept) in halo.logs())
