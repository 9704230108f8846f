"""Addresses of the pages. The JSON routes of other rooms are included before these; `/login` is the doors' own."""

from django.urls import path

from admin_ui.api.markdown import Markdown
from admin_ui.pages.chat import ChatPage

urlpatterns = [
    path("", ChatPage.as_view(), name="home"),
    path("chat", ChatPage.as_view(), name="chat"),
    path("api/markdown", Markdown.as_view(), name="markdown"),
]
