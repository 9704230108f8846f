"""The model registry: the bundled rows, which of several rows counts, and what a row may say."""

import time
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from anthropic.types.model import Model
from openai.types.shared.chat_model import ChatModel

from agents_app.config.errors import ProviderUnknown
from agents_app.config.files import BUNDLED
from agents_app.config.registry import load_registry
from agents_app.config.registry_row import RUNTIMES
from agents_app.config.thinking import ThinkingCapability
from agents_app.runtimes.registry import create_runtime
from halo_project.layout import HomeLayout
from tests.agents_app.config.support import write, write_yaml

ROW: dict[str, Any] = {
    "id": "acme",
    "displayName": "Acme",
    "runtime": "openai-chat",
    "revision": 1,
    "defaultEndpoint": "https://acme.example/v1/",
    "defaultModelId": "rocket",
    "endpointPresets": ["https://acme.example/v1", "https://eu.acme.example/v1"],
    "secrets": [{"key": "api_key", "description": "Key", "default": "<<ACME_KEY>>", "secret": True}],
    "models": [{"id": "rocket", "displayName": "Rocket", "maxOutputTokens": 1000, "contextWindow": 5000}],
}


def installed(home: HomeLayout, folder: str = "models.d", name: str = "acme", **changes: Any) -> Path:
    row = {key: value for key, value in {**ROW, "id": name, **changes}.items() if value is not None}
    return write_yaml(home.global_dir / folder / f"{name}.yaml", row)


class TestBundled:
    def test_the_rows(self, halo_home: HomeLayout) -> None:
        registry = load_registry(halo_home)
        assert registry.problems == {}
        wires = {row.id: row.runtime for row in registry.providers.values()}
        assert wires == {
            **dict.fromkeys(("anthropic", "minimax", "qwen", "mimo"), "anthropic-messages"),
            **dict.fromkeys(
                ("openai", "deepseek", "kimi", "zhipu", "doubao", "hunyuan", "gemini", "ollama"), "openai-chat"
            ),
            "aws-bedrock-mantle": "openai-responses",
            "aws-bedrock-claude-invoke": "bedrock-invoke",
        }
        for row in registry.providers.values():
            assert row.default_endpoint in row.endpoint_presets
            assert row.model(row.default_model_id or "") is not None
            assert row.display_name and row.display_name_zh and row.description and row.revision

    @pytest.mark.parametrize(
        ("provider", "known"), [("anthropic", get_args(get_args(Model)[0])), ("openai", get_args(ChatModel))]
    )
    def test_every_model_is_one_the_sdk_knows(self, provider: str, known, halo_home: HomeLayout) -> None:
        row = load_registry(halo_home).get(provider)
        assert {model.id for model in row.models} <= set(known)
        assert row.model(row.default_model_id or "") is not None
        for model in row.models:
            assert model.max_output_tokens and model.context_window
            assert model.context_window <= (model.max_context_window or model.context_window)

    @pytest.mark.parametrize("path", sorted((BUNDLED / "models").glob("*.yaml")), ids=lambda path: path.stem)
    def test_no_key_is_misspelt(self, path: Path) -> None:
        row = yaml.safe_load(path.read_text(encoding="utf-8"))
        top = "id displayName displayName_zh description description_zh runtime revision defaultEndpoint"
        whole = set(f"{top} defaultModelId endpointPresets models".split())
        assert whole <= set(row) <= whole | {"secrets", "quirks", "generic"}
        for secret in row.get("secrets", ()):
            assert set(secret) <= {"key", "description", "description_zh", "default", "optional", "secret"}
        for model in row["models"]:
            known = {"id", "displayName", "maxOutputTokens", "contextWindow", "maxContextWindow", "capabilities"}
            assert set(model) <= known | {"quirks"}
            assert set(model["capabilities"]) <= {"image", "video", "audio", "promptCaching", "thinking"}

    @pytest.mark.parametrize("name", RUNTIMES)
    def test_every_wire_has_a_runtime(self, name: str, halo_home: HomeLayout) -> None:
        from agents_app.config.model_choice import ModelChoice

        choice = ModelChoice(provider="p", runtime=name, endpoint="https://a", model_id="m", label="m", api_key="k")
        assert create_runtime(choice) is not None


class TestWhichRowCounts:
    @pytest.mark.parametrize(
        ("revisions", "expected"),
        [
            ({"models.d": 3}, "models.d"),
            ({"models.d": 2}, "models.d"),
            ({"models.d": 1}, "bundled"),
            ({"models": 2}, "models"),
            ({"models": 3, "models.d": 2}, "models"),
            ({"models": 3, "models.d": 3}, "models.d"),
            ({"models": None}, "bundled"),
        ],
    )
    def test_the_highest_revision_then_the_later_place(self, revisions, expected, halo_home: HomeLayout) -> None:
        for folder, revision in revisions.items():
            installed(halo_home, folder, "anthropic", displayName=folder, revision=revision)
        name = load_registry(halo_home).get("anthropic").display_name
        assert name == {"bundled": "Anthropic"}.get(expected, expected)

    def test_a_new_row_counts_at_once(self, halo_home: HomeLayout) -> None:
        assert "acme" not in load_registry(halo_home).providers
        path = installed(halo_home)
        assert load_registry(halo_home).get("acme").endpoint_presets == tuple(ROW["endpointPresets"])
        path.unlink()
        assert "acme" not in load_registry(halo_home).providers

    def test_a_broken_row_leaves_the_others(self, halo_home: HomeLayout) -> None:
        write(halo_home.global_dir / "models.d" / "acme.yaml", "id: [")
        registry = load_registry(halo_home)
        assert {"anthropic", "openai", "ollama"} <= set(registry.providers)
        with pytest.raises(ProviderUnknown, match=r"acme\.yaml, line 1"):
            registry.get("acme")

    @pytest.mark.parametrize(
        "text",
        [
            f"displayName: 0x{'F' * 5000}",
            f"0x{'F' * 5000}: a",
            "generic: !!bool foo",
            "displayName: !!timestamp foo",
            'revision: !!int ""',
            f"revision: 1{':1' * 200_000}",
        ],
        ids=["number", "key", "bool", "time", "empty", "sexagesimal"],
    )
    def test_odd_values_leave_the_others_too(self, text: str, halo_home: HomeLayout) -> None:
        write(halo_home.global_dir / "models.d" / "acme.yaml", f"id: acme\nruntime: openai-chat\n{text}\n")
        registry = load_registry(halo_home)
        assert "acme" in registry.problems and "openai" in registry.providers
        began = time.perf_counter()
        load_registry(halo_home)
        assert time.perf_counter() - began < 1

    def test_a_folder_that_is_a_loop_leaves_the_bundled_ones(self, halo_home: HomeLayout) -> None:
        halo_home.installed_models.symlink_to("models.d")
        registry = load_registry(halo_home)
        assert "openai" in registry.providers and "models.d" in registry.problems["models.d"]

    def test_a_broken_copy_of_a_bundled_row_leaves_the_bundled_one(self, halo_home: HomeLayout) -> None:
        installed(halo_home, name="openai", defaultEndpoint="nonsense", revision=9)
        assert load_registry(halo_home).get("openai").default_endpoint == "https://api.openai.com/v1"

    def test_unknown_names_the_known_ones(self, halo_home: HomeLayout) -> None:
        with pytest.raises(
            ProviderUnknown, match="Known providers: auto, rehearsal, anthropic, aws-bedrock-claude-invoke, "
        ) as caught:
            load_registry(halo_home).get("nobody")
        assert (caught.value.code, caught.value.status) == ("provider_unknown", 422)


class TestRow:
    def test_everything_is_read(self, halo_home: HomeLayout) -> None:
        able = {
            "image": False,
            "video": True,
            "promptCaching": {"default": "5m", "ttlPresets": [{"value": "5m", "label": "5"}]},
            "thinking": {
                "mode": "manual",
                "defaultEnabled": True,
                "default": "high",
                "defaultBudgetTokens": 2048,
                "effortPresets": [{"value": "low"}, {"value": "high"}],
            },
        }
        sizes = {"maxOutputTokens": 10, "contextWindow": 20, "maxContextWindow": 30, "compressAt": 0.7}
        installed(halo_home, models=[{"id": "m", **sizes, "endpoints": ["https://a/"], "capabilities": able}])
        row = load_registry(halo_home).get("acme")
        model = row.model("m")
        assert model is not None
        assert (row.default_endpoint, row.secrets[0].default) == ("https://acme.example/v1", "<<ACME_KEY>>")
        assert (model.display_name, model.max_output_tokens, model.context_window) == ("m", 10, 20)
        assert (model.max_context_window, model.compress_at, model.endpoints) == (30, 0.7, ("https://a",))
        assert (model.image, model.video, model.audio) == (False, True, False)
        assert (model.caching_default, model.caching_ttls) == ("5m", ("5m",))
        assert model.thinking == ThinkingCapability("manual", True, "high", 2048, ("low", "high"))

    def test_fields_that_nobody_reads_are_told(self, halo_home: HomeLayout) -> None:
        model = {"id": "m", "maxOutputToken": 5, "capabilities": {"images": True, "thinking": {"modes": "x"}}}
        installed(halo_home, models=[model], endpoints=["https://a"])
        row = load_registry(halo_home).get("acme")
        assert row.unread == (
            "endpoints",
            "models[0].maxOutputToken",
            "models[0].capabilities.images",
            "models[0].capabilities.thinking.modes",
        )
        assert "acme.yaml: `endpoints`, `models[0].maxOutputToken`" in row.unread_sentence

    def test_no_bundled_row_has_one(self, halo_home: HomeLayout) -> None:
        assert not any(row.unread for row in load_registry(halo_home).providers.values())

    def test_an_unlisted_model_is_not_known(self, halo_home: HomeLayout) -> None:
        installed(halo_home)
        assert load_registry(halo_home).get("acme").model("other") is None

    @pytest.mark.parametrize(
        ("name", "runtime"),
        [("deepseek", "openai-chat"), ("minimax", "anthropic-messages"), ("aws-bedrock-mantle", "openai-responses")],
    )
    def test_rows_from_before_runtime_was_a_field(self, name: str, runtime: str, halo_home: HomeLayout) -> None:
        installed(halo_home, "models", name, runtime=None, revision=None)
        assert load_registry(halo_home).get(name).runtime == runtime

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"runtime": None}, "`runtime` must be the wire protocol"),
            ({"id": "other"}, "`id` must be the same as the file's name"),
            ({"defaultEndpoint": "acme.example"}, "`defaultEndpoint` must be an address"),
            ({"endpointPresets": ["x"]}, "`endpointPresets` must be a list; each entry"),
            ({"revision": -1}, "`revision` must be a whole number"),
            ({"secrets": [{"key": "api_key", "default": "sk-real"}]}, "`secrets[0].default` must be empty or the name"),
            ({"secrets": {"api_key": "x"}}, "`secrets` must be a list of blocks"),
            ({"models": [{"id": "m", "capabilities": {"promptCaching": {"default": "forever"}}}]}, "one of 5m, 1h"),
            ({"models": [{"displayName": "x"}]}, "`models[0].id` is missing"),
            ({"models": [{"id": "m", "capabilities": {"thinking": {"mode": "x"}}}]}, "thinking.mode` must be one of"),
        ],
    )
    def test_wrong(self, changes: dict[str, Any], sentence: str, halo_home: HomeLayout) -> None:
        row = {**ROW, **changes}
        write_yaml(halo_home.global_dir / "models.d" / "acme.yaml", {k: v for k, v in row.items() if v is not None})
        problem = load_registry(halo_home).problems["acme"]
        assert sentence in problem
        assert "sk-real" not in problem

    @pytest.mark.parametrize("name", ["auto", "rehearsal"])
    def test_reserved_ids(self, name: str, halo_home: HomeLayout) -> None:
        installed(halo_home, name=name)
        assert "auto and rehearsal have a meaning" in load_registry(halo_home).problems[name]
