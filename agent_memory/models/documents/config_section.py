"""A section of C's configuration: its texts may name environment variables, its keys are hidden."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    WithJsonSchema,
    model_validator,
)

from agent_memory.errors import ConfigurationError
from agent_memory.models.fields import Text, clean_text
from agent_memory.models.record import SparseRecord

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET: Final = re.compile("key|token|secret|password|connection", re.IGNORECASE)
_SECRETS: Final = ("api_key", "connection_string")
_ADDRESSES: Final = ("base_url", "metrics_endpoint")
_COVERED: Final = "*" * 10  # what a secret is dumped as
_KEY_VARIABLES: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def _clean_secret(value: object) -> SecretStr | None:
    """Return a key, or refuse what none can be, without showing it."""
    if value is None:
        return None
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str) or not text or not all("!" <= letter <= "~" for letter in text):
        raise ValueError("must be a text without spaces, or ${NAME} for an environment variable")
    if text == _COVERED:
        raise ValueError("is the cover of a secret, not the secret: give it, or ${NAME}")
    if "${" in text and reference_in(text) is None:
        raise ValueError("has a ${ that begins no ${NAME}: a reference stands alone")
    return SecretStr(text)


def _clean_named(text: str) -> str:
    if not text.strip() or len(text) > 500:
        raise ValueError(f"a text of 1 to 500 characters is needed, not one of {len(text):,}")
    return text


def _dumped(secret: SecretStr | None) -> str | None:
    """Write a reference as it was given, and cover anything else."""
    if secret is None:
        return None
    text = secret.get_secret_value()
    return text if reference_in(text) else _COVERED


# Pydantic's own reading of a SecretStr takes none that was covered before where JSON is read.
Secret = Annotated[
    SecretStr | None,
    PlainValidator(_clean_secret),
    PlainSerializer(_dumped, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]}),
]
"""A key, or ``${NAME}`` for one in the environment. It is shown nowhere; a reference is dumped."""
Whole = Annotated[int, Field(strict=True, lt=2**31)]
"""A whole number: no text, and no truth, which Python would count as 0 or 1."""
Seconds = Annotated[int, Field(strict=True, ge=1, le=86_400)]
"""A span of 1 second to a day."""
Named = Annotated[Text, AfterValidator(_clean_named)]
"""A text of 1 to 500 characters that is not blank."""


def reference_in(text: str | None) -> str | None:
    """Return the NAME of a text that is ``${NAME}``, from its first character to its last."""
    match = _REFERENCE.fullmatch(text or "")
    return None if match is None else match[1]


class ConfigSection(SparseRecord):
    """One section of the configuration. A text of it may be ``${NAME}``: an environment variable.

    A reference is kept as it is, and looked up when the value is asked for. Making one from wrong
    values raises Pydantic's ``ValidationError``.
    """

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    section: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _with_secrets_covered(cls, values: Any) -> Any:  # noqa: ANN401 - whatever was given
        """Cover what may be secret: an error has the value, that of a mistyped name too."""
        if not isinstance(values, Mapping):
            return values
        return {
            name: _covered(value) if cls._is_hidden(name, value) else value
            for name, value in values.items()
        }

    @classmethod
    def _is_hidden(cls, name: object, value: object) -> bool:
        if name in _ADDRESSES:
            return not _is_text(value)  # one that will be refused: it may hold a password
        is_field = name in cls.model_fields
        return name in _SECRETS if is_field else _SECRET.search(str(name)) is not None

    def resolved(self, field: str, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the text of a field, with ``${NAME}`` looked up; ``None`` where it is not set.

        ``environ`` is the process's environment unless it is given. Raises ``ConfigurationError``
        that names the field and the variable where there is none, or it holds nothing.
        """
        value = getattr(self, field)
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        name = reference_in(text)
        if name is None:
            return text
        value = (os.environ if environ is None else environ).get(name, "").strip()
        if not value:
            raise ConfigurationError(
                f"{self.section}.{field} is ${{{name}}}, and the environment variable {name} is"
                " not set: set it, or give the value itself"
            )
        return value

    def resolved_api_key(self, environ: Mapping[str, str] | None = None) -> str | None:
        """Return the key, looked up where it is ``${NAME}``.

        Where none is set, it is that of the provider's usual variable (OPENAI_API_KEY,
        ANTHROPIC_API_KEY), or ``None``. Raises ``ConfigurationError`` for a variable that is not
        set, and for one that holds what no key can be.
        """
        key = self.resolved("api_key", environ)
        if key is None:
            variable = _KEY_VARIABLES.get(getattr(self, "provider", ""), "")
            key = (os.environ if environ is None else environ).get(variable, "").strip() or None
        if key is not None and not all("!" <= letter <= "~" for letter in key):
            raise ConfigurationError(
                f"{self.section}.api_key has a character that no key has: copy it again"
            )
        return key


def _is_text(value: object) -> bool:
    try:
        return value is None or (isinstance(value, str) and clean_text(value) == value != "")
    except ValueError:
        return False


def _covered(value: object) -> object:
    if value is None or isinstance(value, SecretStr):
        return value
    return SecretStr(value.strip() if isinstance(value, str) else " ")  # refused, and not shown
