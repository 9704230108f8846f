"""Routes of the doors, below /api/."""

from django.urls import path

from channels_app.api.auth import ChangePassword, Check, Login, Logout
from channels_app.api.commands import Commands
from channels_app.api.fs import Browse, Exists, Home, ResolveWorkspace
from channels_app.api.sessions import Exchange, SessionDetail

urlpatterns = [
    path("auth/login", Login.as_view(), name="auth-login"),
    path("auth/logout", Logout.as_view(), name="auth-logout"),
    path("auth/check", Check.as_view(), name="auth-check"),
    path("auth/change-password", ChangePassword.as_view(), name="auth-change-password"),
    path("commands", Commands.as_view(), name="commands"),
    path("fs/home", Home.as_view(), name="fs-home"),
    path("fs/exists", Exists.as_view(), name="fs-exists"),
    path("fs/browse", Browse.as_view(), name="fs-browse"),
    path("fs/workspace/resolve", ResolveWorkspace.as_view(), name="fs-resolve"),
    path("sessions/logs/<str:session_id>", SessionDetail.as_view(), name="session-detail"),
    path("sessions/logs/<str:session_id>/exchanges/<str:row_id>", Exchange.as_view(), name="session-exchange"),
]
