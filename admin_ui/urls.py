"""Addresses of the pages. The JSON routes of other rooms come before these; the login pages are the doors' own."""

from django.urls import include, path

from admin_ui.api.markdown import Markdown
from admin_ui.pages.chat import ChatPage

urlpatterns = [
    path("", ChatPage.as_view(), name="home"),
    path("chat", ChatPage.as_view(), name="chat"),
    path("api/markdown", Markdown.as_view(), name="markdown"),
    path("", include("channels_app.auth.urls")),
]
