"""An upstream that can hold its bodies back; its requests show the propagated header fields."""

import threading

from harness import upstream

SIZE = 200_000


class Upstream(upstream.Upstream):
    """Sends SIZE bytes for each path; `missing…` gives 404, and `held…` stops after its first half until `release`."""

    def __init__(self):
        self.release = threading.Event()
        super().__init__()

    def answer(self, request):
        name = request.path.rsplit("/", 1)[-1]
        if name.startswith("missing"):
            return upstream.Answer(404)
        file = upstream.asset(data=upstream.content(name, SIZE), etag=f'"{name}"', last_modified=None, cache_control="max-age=600")
        answer = file.answer(request)
        answer.hold = self.release if name.startswith("held") else None
        return answer

    def of(self, text="", method="GET"):
        """The header fields of the requests with this text in their target, with lower-case names."""
        return [request.fields for request in super().of(text, method)]
