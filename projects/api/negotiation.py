"""What an answer is made of."""

from rest_framework.negotiation import DefaultContentNegotiation


class WhatThereIs(DefaultContentNegotiation):
    """Answers and errors are JSON, whatever was asked for: nothing is “not acceptable”.

    Files and streams of events, which a few routes have, are no renderings of an answer. So
    `?format=` is free for what a route makes of it.
    """

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type
