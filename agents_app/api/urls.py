"""Routes of the agents room, below /api/."""

from django.urls import path

from agents_app.api.agent_configs import AgentConfigs
from agents_app.api.model_checks import ModelCheck

urlpatterns = [
    path("agent-configs", AgentConfigs.as_view(), name="agent-configs"),
    path("models/check", ModelCheck.as_view(), name="models-check"),
]
