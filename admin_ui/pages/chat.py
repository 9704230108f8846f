"""The chat page: a shell that the page's scripts fill over the socket. Who is not signed in goes to the login first."""

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie

from agents_app.config.keys import providers_with_key
from channels_app.auth.service import is_logged_in
from halo_project.errors import HaloError

LOGIN = "/login"


@method_decorator([never_cache, ensure_csrf_cookie], name="dispatch")
class ChatPage(View):
    """GET / and /chat?workspace=…&session=…: the query belongs to the scripts, so every address gives the same page."""

    def get(self, request: HttpRequest) -> HttpResponse:
        if not is_logged_in(request.session):
            return HttpResponseRedirect(f"{LOGIN}?{urlencode({'next': request.get_full_path()})}")
        return render(request, "chat.html", chat_context())


def chat_context() -> dict[str, object]:
    """What the shell needs to know of the installation."""
    return {
        "default_workspace": str(settings.HALO.workspace),
        "badge": settings.HALO.badge,
        "version": settings.HALO_VERSION,
        "settings_file": str(settings.HALO_HOME.settings_yaml),
        "rehearsal": _rehearses(),
    }


def _rehearses() -> bool:
    """True when no provider has a key. A settings file that cannot be read is not this banner's business."""
    try:
        return not providers_with_key(settings.HALO_HOME, settings.HALO.lookup)
    except HaloError:
        return False
