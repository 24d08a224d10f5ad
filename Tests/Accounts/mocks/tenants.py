"""An upstream with users: each has files of their own, and rights to shared files."""

from .base import Answer, Mock, content, serve, tag_of

SIZE = 300_000


class Tenants(Mock):
    """`/own/…` has other bytes for each user, `/shared/…` the same bytes for users in `permitted`. Users are the values
    of `field`; unknown ones get 401, those without the right 403."""

    def __init__(self, users, sizes=None, field="authorization"):
        self.users, self.permitted, self.sizes, self.field = users, set(users.values()), sizes or {}, field
        #: Users with a version of their own of the shared files.
        self.personal = set()
        #: The values of `WWW-Authenticate` for unknown users.
        self.challenges = ["Bearer"]
        super().__init__()

    def answer(self, request):
        user = self.users.get(request.fields.get(self.field, ""))
        if user is None:
            return Answer(401, {"WWW-Authenticate": ", ".join(self.challenges)})
        request.account = user
        if request.name.startswith("/shared/"):
            if user not in self.permitted:
                return Answer(403)
            return serve(request, self.own(user, request.name) if user in self.personal else self.shared(request.name))
        data = self.own(user, request.name)
        # Equal entity tags: only the key keeps the users apart.
        return serve(request, data, tag=tag_of(self.shared(request.name)))

    def own(self, user, path):
        return content(f"{user} {path}", self.sizes.get(path, SIZE))

    def shared(self, path):
        return content(path, self.sizes.get(path, SIZE))

    def proofs(self, user):
        """The requests for one byte of a user."""
        return [
            request for request in list(self.requests)
            if request.account == user and request.fields.get("range") == "bytes=0-0"
        ]  # fmt: skip
