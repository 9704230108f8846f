"""Routes of the agents room, below /api/."""

from django.urls import path

from agents_app.api.agent_configs import AgentConfigs
from agents_app.api.model_checks import ModelCheck
from agents_app.api.settings import Settings, SettingsSchema
from agents_app.api.skills import Skill, Skills, SkillToggle

urlpatterns = [
    path("agent-configs", AgentConfigs.as_view(), name="agent-configs"),
    path("models/check", ModelCheck.as_view(), name="models-check"),
    path("skills", Skills.as_view(), name="skills"),
    path("skills/<str:skill_id>", Skill.as_view(), name="skill"),
    path("skills/<str:skill_id>/toggle", SkillToggle.as_view(), name="skill-toggle"),
    path("settings", Settings.as_view(), name="settings"),
    path("settings/schema", SettingsSchema.as_view(), name="settings-schema"),
]
