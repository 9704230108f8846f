"""The login page and the logout form. Plain Django forms with a CSRF token; the JSON routes are in `api/auth.py`."""

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import rotate_token
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from channels_app.auth.lockout import LockedOut
from channels_app.auth.service import is_logged_in, log_in, log_out
from halo_project.clock import utcnow
from halo_project.errors import HaloError

HOME = "/"
LOGIN = "/login"


class PasswordForm(forms.Form):
    """What the login form sends."""

    password = forms.CharField(strip=False, max_length=1024)


@method_decorator([never_cache, csrf_protect, sensitive_post_parameters()], name="dispatch")
class LoginPage(View):
    """GET and POST /login. Renders `login.html` with {error, next, badge}; `error` is None or a sentence."""

    def get(self, request: HttpRequest) -> HttpResponse:
        target = safe_next(request, request.GET.get("next"))
        if is_logged_in(request.session):
            return HttpResponseRedirect(target)
        return _page(request, target)

    def post(self, request: HttpRequest) -> HttpResponse:
        target = safe_next(request, request.POST.get("next"))
        form = PasswordForm(request.POST)
        if not form.is_valid():
            return _page(request, target, "Please enter the password.", status=400)
        try:
            log_in(request, form.cleaned_data["password"], utcnow())
        except HaloError as error:  # wrong, shut out, or too busy: each says so in a sentence
            response = _page(request, target, error.message, status=error.status)
            if isinstance(error, LockedOut):
                response["Retry-After"] = str(error.retry_after)
            return response
        rotate_token(request)  # here, not for the JSON login: its only cookie is the login's
        return HttpResponseRedirect(target)


@method_decorator([never_cache, csrf_protect], name="dispatch")
class LogoutPage(View):
    """POST /logout."""

    http_method_names = ("post", "options")

    def post(self, request: HttpRequest) -> HttpResponse:
        log_out(request)
        return HttpResponseRedirect(LOGIN)


def safe_next(request: HttpRequest, wanted: str | None) -> str:
    """Where to go after signing in: a path of this server, never another site."""
    if wanted and wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        return wanted
    return HOME


def _page(request: HttpRequest, target: str, error: str | None = None, status: int = 200) -> HttpResponse:
    context = {"error": error, "next": target, "badge": settings.HALO.badge}
    return render(request, "login.html", context, status=status)
