"""Which app answers which address. The addresses below these are the apps' own."""

from django.urls import include, path

from halo_project.health import health

urlpatterns = [
    path("api/health", health),
    path("api/", include("sessions_app.api.urls")),
    path("api/", include("agents_app.api.urls")),
    path("api/", include("channels_app.api.urls")),
    path("api/", include("cron_app.api.urls")),
    path("", include("admin_ui.urls")),
]

handler400 = "halo_project.api_errors.bad_request"
handler404 = "halo_project.api_errors.not_found"
handler500 = "halo_project.api_errors.server_error"
