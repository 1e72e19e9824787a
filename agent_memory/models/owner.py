"""The owner of memories, when not everybody's are meant."""

from typing import NamedTuple


class Owner(NamedTuple):
    """A user, or one run of this user."""

    user_id: str
    run_id: str | None = None

    def owns(self, user_id: object, run_id: object) -> bool:
        """Return whether a memory about this user, of this run, belongs to the owner."""
        return user_id == self.user_id and self.run_id in (None, run_id)
