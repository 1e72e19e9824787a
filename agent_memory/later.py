"""The public names whose modules are imported when they are first asked for.

They are of document C, of sessions and of the graph: 40 ms, of the 200 that a command may take to
start, for what few need.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

_NAMES: Final = {
    "extraction.llm.anthropic": "AnthropicChat",
    "extraction.llm.registry": "as_language_model",
    "extraction.llm.openai": "OpenAIChat",
    "extraction.messages": "conversation",
    "api.graph": """
        MemoryGraph
        """,
    "models.extraction": """
        ExtractedFacts ExtractionMetadata MemoryOperation MemoryOperations OperationEvent
        ProcessingMetadata
        """,
    "models.graph": """
        EdgeView Entity EntityMetadata EntityView GraphAction GraphChange GraphPath GraphReport
        GraphUpdate GraphUpdates GraphUpdatesMetadata Neighbour Neighbourhood Relationship
        RelationshipMetadata
        """,
    "models.documents.record": """
        MemoryRecord MemoryRecordMetadata MemorySearchResponse RecordSearchMetadata SearchQuery
        """,
    "models.conversation": """
        ContentBlock ImageURL Message MessageRole
        """,
    "models.documents.record_rules": """
        is_uuid4 validate_embedding validate_record_metadata
        """,
    "models.documents.responses": """
        AddMemoryMetadata AddMemoryRequest AddMemoryResponse AddedMemory ErrorCode ErrorDetail
        ErrorResponse ResponseMetadata SearchMemoryRequest SearchMemoryResponse SuccessResponse
        """,
    "models.review": """
        Review
        """,
    "models.session": """
        SessionContext SessionPermissions SessionType
        """,
    "models.documents.system_config": """
        AnthropicConfig EmbedderConfig GraphStoreConfig LLMConfig MonitoringConfig OpenAIConfig
        PerformanceConfig QdrantConfig SystemConfig VectorStoreConfig
        """,
    "api.session": """
        SessionGraph SessionMemory
        """,
    "api.system_config": """
        load_system_config memory_arguments refuse_remote_store
        """,
}
NAMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
"""Each name, and the module of the package that has it."""


def imported(name: str) -> object:
    """Return what has a name of ``NAMES``."""
    return getattr(import_module(f"{__package__}.{NAMES[name]}"), name)
