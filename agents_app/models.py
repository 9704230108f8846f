"""Rows about agents and skills. What they are is in their files; here stands what a workspace switched off."""

from django.db import models

from sessions_app.models import Workspace


class DisabledItem(models.Model):
    """An agent, skill or extension that is switched off in one workspace. `scope`: where the item itself comes from."""

    class Kind(models.TextChoices):
        AGENT = "agent"
        SKILL = "skill"
        EXTENSION = "extension"

    class Scope(models.TextChoices):
        GLOBAL = "global"
        WORKSPACE = "workspace"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="disabled_items")
    item_type = models.CharField(max_length=10, choices=Kind.choices)
    item_id = models.CharField(max_length=200)
    scope = models.CharField(max_length=10, choices=Scope.choices)
    disabled_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "item_type", "item_id", "scope"], name="disabled_item_unique")
        ]

    def __str__(self) -> str:
        return f"{self.item_type} {self.item_id}"
