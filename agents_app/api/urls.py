"""Routes of the agents room, below /api/."""

from django.urls import path

from agents_app.api.agent_configs import (
    AgentConfig,
    AgentConfigs,
    AgentModels,
    AgentPrompt,
    AgentText,
    AgentToggle,
    AgentTools,
    AgentYaml,
)
from agents_app.api.model_checks import ModelCheck
from agents_app.api.settings import Settings, SettingsSchema
from agents_app.api.skills import Skill, Skills, SkillToggle

urlpatterns = [
    path("agent-configs", AgentConfigs.as_view(), name="agent-configs"),
    path("agent-configs/tools", AgentTools.as_view(), name="agent-tools"),
    path("agent-configs/models", AgentModels.as_view(), name="agent-models"),
    path("agent-configs/<str:agent_id>", AgentConfig.as_view(), name="agent-config"),
    path("agent-configs/<str:agent_id>/yaml", AgentYaml.as_view(), name="agent-yaml"),
    path("agent-configs/<str:agent_id>/toggle", AgentToggle.as_view(), name="agent-toggle"),
    path("agent-configs/<str:agent_id>/md/<str:file>", AgentText.as_view(), name="agent-text"),
    path("agent-configs/<str:agent_id>/prompt", AgentPrompt.as_view(), name="agent-prompt"),
    path("models/check", ModelCheck.as_view(), name="models-check"),
    path("skills", Skills.as_view(), name="skills"),
    path("skills/<str:skill_id>", Skill.as_view(), name="skill"),
    path("skills/<str:skill_id>/toggle", SkillToggle.as_view(), name="skill-toggle"),
    path("settings", Settings.as_view(), name="settings"),
    path("settings/schema", SettingsSchema.as_view(), name="settings-schema"),
]
