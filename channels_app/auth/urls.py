"""Pages of the login, at the root of the site."""

from django.urls import path

from channels_app.auth.pages import LoginPage, LogoutPage

urlpatterns = [
    path("login", LoginPage.as_view(), name="login"),
    path("logout", LogoutPage.as_view(), name="logout"),
]
