"""Routes of the agents room, below /api/."""

from django.urls import path

from agents_app.api.agent_configs import AgentConfigs

urlpatterns = [
    path("agent-configs", AgentConfigs.as_view(), name="agent-configs"),
]
