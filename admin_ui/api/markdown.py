"""POST api/markdown {texts: […]} → {html: […]}: many finished blocks in one request, in the order given."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from admin_ui.markdown.render import render

MAX_TEXTS = 200
MAX_CHARS = 200_000  # of one text
MAX_TOTAL_CHARS = 2_000_000


class Markdown(APIView):
    """Refuses what is over the bounds with a 400; the page then shows that text as it is."""

    class Input(serializers.Serializer):
        texts = serializers.ListField(
            child=serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=MAX_CHARS),
            max_length=MAX_TEXTS,
        )

        def validate_texts(self, texts: list[str]) -> list[str]:
            if sum(map(len, texts)) > MAX_TOTAL_CHARS:
                raise serializers.ValidationError(f"All texts together may have {MAX_TOTAL_CHARS:,} characters.")
            return texts

    def post(self, request: Request) -> Response:
        body = self.Input(data=request.data)
        body.is_valid(raise_exception=True)
        return Response({"html": [render(text) for text in body.validated_data["texts"]]})
