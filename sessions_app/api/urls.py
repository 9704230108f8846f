"""Routes of the sessions room, below /api/. The route of one session is with the doors: deleting needs what runs it."""

from django.urls import path

from sessions_app.api.views import SessionArchive, SessionList, SessionRows

urlpatterns = [
    path("sessions/logs", SessionList.as_view(), name="session-list"),
    path("sessions/logs/<str:session_id>/rows", SessionRows.as_view(), name="session-rows"),
    path("sessions/logs/<str:session_id>/archive/<int:number>", SessionArchive.as_view(), name="session-archive"),
]
