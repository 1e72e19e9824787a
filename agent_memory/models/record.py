"""What all models of the library have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A Pydantic model that is built when it is first used.

    Building all of them at import took 40 of the 200 ms that a command may take to start.
    """

    model_config = ConfigDict(defer_build=True)
