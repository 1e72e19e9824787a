"""Long-term memory for AI agents: one SQLite file per agent, no server, no key, no network."""

import typing as _typing

from agent_memory import later as _later
from agent_memory.context import (
    estimate_tokens,
    render_memories,
)
from agent_memory.embedders import (
    EmbedderChain,
    EmbeddingGenerator,
    EmbeddingUsage,
    FastEmbedEmbedder,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
    WordLlamaEmbedder,
    create_embedder,
    embedder_names,
)
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    DuplicateMemory,
    EmbeddingError,
    InvalidSession,
    LimitReached,
    MemoryNotFound,
    MigrationError,
    MissingAgentIdentity,
    NewerSchema,
    NotAMemoryFile,
    PermissionDenied,
    ProviderError,
    RateLimitExceeded,
    RejectedContent,
    SecretFound,
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    StorageUntrusted,
    ValidationError,
)
from agent_memory.memory import (
    AgentMemory,
)
from agent_memory.models.agent import (
    AgentConfig,
    AgentInfo,
    AgentMetadata,
    AgentStats,
    AgentSummary,
    CheckReport,
    MigrationInfo,
    Problem,
    RebuildReport,
)
from agent_memory.models.backup import (
    BackupFile,
    RestoreReport,
)
from agent_memory.models.config import (
    MemoryCaptureConfig,
    MemoryContextConfig,
    MemoryToolConfig,
)
from agent_memory.models.duplicate import (
    Duplicate,
    DuplicateGroup,
)
from agent_memory.models.erasure import (
    ErasedCopy,
    ErasureReceipt,
)
from agent_memory.models.event import (
    MemoryEvent,
)
from agent_memory.models.life import (
    ExportReport,
    ImportNote,
    ImportReport,
    Undone,
)
from agent_memory.models.memory import (
    HistoryEntry,
    Memory,
    MemoryInput,
    ScoredMemory,
    TaskMetadata,
)
from agent_memory.models.migration import (
    MigrationPlan,
    MigrationProgress,
)
from agent_memory.models.observation import (
    Observation,
)
from agent_memory.models.rejection import (
    Rejection,
)
from agent_memory.models.retention import (
    RETENTION_PRESETS,
    KindLimit,
    RetentionPolicy,
    TidyItem,
    TidyReport,
)
from agent_memory.models.scratchpad import (
    Promotion,
    Scratchpad,
    ScratchpadMemoryEntry,
)
from agent_memory.models.search import (
    DateRange,
    MemorySearchResult,
    NearMiss,
    ScoreExplanation,
    SearchFilters,
    SearchMetadata,
    SearchResults,
)
from agent_memory.models.secret import (
    FoundSecrets,
)
from agent_memory.models.vector import (
    VectorPoint,
    VectorSearchQuery,
)
from agent_memory.paths import (
    database_path,
    memory_root,
)
from agent_memory.protocols import (
    Embedder,
    LanguageModel,
    SecretScanner,
)
from agent_memory.storage import (
    MemoryStorage,
)
from agent_memory.validation import (
    is_valid_agent_id,
    normalize_tags,
    sanitize_agent_id,
    validate_agent_id,
    validate_memory_content,
    validate_tags,
)
from agent_memory.vocabulary import (
    BACKUP_SUFFIX,
    DEFAULT_MEMORY_ROOT,
    DEFAULT_MIGRATION_THRESHOLD,
    DEFAULT_SEARCH_LIMIT,
    DEFAULT_SIMILARITY_THRESHOLD,
    EMBEDDING_MODELS,
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_SCRATCHPAD_SIZE,
    MAX_SEARCH_LIMIT,
    MAX_TAG_LENGTH,
    MAX_TAGS_PER_MEMORY,
    METADATA_FILENAME,
    MIGRATION_BATCH_SIZE,
    QDRANT_CONFIG,
    SCRATCHPAD_FILENAME,
    VECTOR_DB_FILENAME,
    DuplicateGrade,
    EventName,
    HistoryEvent,
    Importance,
    MatchType,
    MemoryCategory,
    MemoryKind,
    MemoryType,
    ObservationType,
    OnDuplicate,
    OnSecret,
    StorageBackend,
    TaskStatus,
)

# These are imported when they are first asked for: see ``later``.
if _typing.TYPE_CHECKING:
    from agent_memory.extraction.anthropic_model import AnthropicChat
    from agent_memory.extraction.choosing import as_language_model
    from agent_memory.extraction.openai_model import OpenAIChat
    from agent_memory.extraction.reading import conversation
    from agent_memory.graph import (
        MemoryGraph,
    )
    from agent_memory.models.extraction import (
        ExtractedFacts,
        ExtractionMetadata,
        MemoryOperation,
        MemoryOperations,
        OperationEvent,
        ProcessingMetadata,
    )
    from agent_memory.models.graph import (
        EdgeView,
        Entity,
        EntityMetadata,
        EntityView,
        GraphAction,
        GraphChange,
        GraphPath,
        GraphReport,
        GraphUpdate,
        GraphUpdates,
        GraphUpdatesMetadata,
        Neighbour,
        Neighbourhood,
        Relationship,
        RelationshipMetadata,
    )
    from agent_memory.models.memory_record import (
        MemoryRecord,
        MemoryRecordMetadata,
        MemorySearchResponse,
        RecordSearchMetadata,
        SearchQuery,
    )
    from agent_memory.models.message import (
        ContentBlock,
        ImageURL,
        Message,
        MessageRole,
    )
    from agent_memory.models.record_rules import (
        is_uuid4,
        validate_embedding,
        validate_record_metadata,
    )
    from agent_memory.models.response import (
        AddedMemory,
        AddMemoryMetadata,
        AddMemoryRequest,
        AddMemoryResponse,
        ErrorCode,
        ErrorDetail,
        ErrorResponse,
        ResponseMetadata,
        SearchMemoryRequest,
        SearchMemoryResponse,
        SuccessResponse,
    )
    from agent_memory.models.review import (
        Review,
    )
    from agent_memory.models.session import (
        SessionContext,
        SessionPermissions,
        SessionType,
    )
    from agent_memory.models.system_config import (
        AnthropicConfig,
        EmbedderConfig,
        GraphStoreConfig,
        LLMConfig,
        MonitoringConfig,
        OpenAIConfig,
        PerformanceConfig,
        QdrantConfig,
        SystemConfig,
        VectorStoreConfig,
    )
    from agent_memory.session_memory import (
        SessionGraph,
        SessionMemory,
    )
    from agent_memory.system_settings import (
        load_system_config,
        memory_arguments,
        refuse_remote_store,
    )


def __getattr__(name: str) -> object:
    if name not in _later.NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _later.imported(name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_later.NAMES})


__all__ = [
    "BACKUP_SUFFIX",
    "DEFAULT_MEMORY_ROOT",
    "DEFAULT_MIGRATION_THRESHOLD",
    "DEFAULT_SEARCH_LIMIT",
    "DEFAULT_SIMILARITY_THRESHOLD",
    "EMBEDDING_MODELS",
    "MAX_MEMORY_CONTENT_LENGTH",
    "MAX_SCRATCHPAD_SIZE",
    "MAX_SEARCH_LIMIT",
    "MAX_TAGS_PER_MEMORY",
    "MAX_TAG_LENGTH",
    "METADATA_FILENAME",
    "MIGRATION_BATCH_SIZE",
    "QDRANT_CONFIG",
    "RETENTION_PRESETS",
    "SCRATCHPAD_FILENAME",
    "VECTOR_DB_FILENAME",
    "AddMemoryMetadata",
    "AddMemoryRequest",
    "AddMemoryResponse",
    "AddedMemory",
    "AgentConfig",
    "AgentInfo",
    "AgentMemory",
    "AgentMemoryError",
    "AgentMetadata",
    "AgentStats",
    "AgentSummary",
    "AnthropicChat",
    "AnthropicConfig",
    "BackupFile",
    "CheckReport",
    "ConfigurationError",
    "ContentBlock",
    "DateRange",
    "Duplicate",
    "DuplicateGrade",
    "DuplicateGroup",
    "DuplicateMemory",
    "EdgeView",
    "Embedder",
    "EmbedderChain",
    "EmbedderConfig",
    "EmbeddingError",
    "EmbeddingGenerator",
    "EmbeddingUsage",
    "Entity",
    "EntityMetadata",
    "EntityView",
    "ErasedCopy",
    "ErasureReceipt",
    "ErrorCode",
    "ErrorDetail",
    "ErrorResponse",
    "EventName",
    "ExportReport",
    "ExtractedFacts",
    "ExtractionMetadata",
    "FastEmbedEmbedder",
    "FoundSecrets",
    "GraphAction",
    "GraphChange",
    "GraphPath",
    "GraphReport",
    "GraphStoreConfig",
    "GraphUpdate",
    "GraphUpdates",
    "GraphUpdatesMetadata",
    "HistoryEntry",
    "HistoryEvent",
    "ImageURL",
    "ImportNote",
    "ImportReport",
    "Importance",
    "InvalidSession",
    "KindLimit",
    "LLMConfig",
    "LanguageModel",
    "LimitReached",
    "MatchType",
    "Memory",
    "MemoryCaptureConfig",
    "MemoryCategory",
    "MemoryContextConfig",
    "MemoryEvent",
    "MemoryGraph",
    "MemoryInput",
    "MemoryKind",
    "MemoryNotFound",
    "MemoryOperation",
    "MemoryOperations",
    "MemoryRecord",
    "MemoryRecordMetadata",
    "MemorySearchResponse",
    "MemorySearchResult",
    "MemoryStorage",
    "MemoryToolConfig",
    "MemoryType",
    "Message",
    "MessageRole",
    "MigrationError",
    "MigrationInfo",
    "MigrationPlan",
    "MigrationProgress",
    "MissingAgentIdentity",
    "MonitoringConfig",
    "NearMiss",
    "Neighbour",
    "Neighbourhood",
    "NewerSchema",
    "NotAMemoryFile",
    "Observation",
    "ObservationType",
    "OnDuplicate",
    "OnSecret",
    "OpenAIChat",
    "OpenAIConfig",
    "OpenAIEmbedder",
    "OperationEvent",
    "PerformanceConfig",
    "PermissionDenied",
    "Problem",
    "ProcessingMetadata",
    "Promotion",
    "ProviderError",
    "QdrantConfig",
    "RateLimitExceeded",
    "RebuildReport",
    "RecordSearchMetadata",
    "RejectedContent",
    "Rejection",
    "Relationship",
    "RelationshipMetadata",
    "ResponseMetadata",
    "RestoreReport",
    "RetentionPolicy",
    "Review",
    "ScoreExplanation",
    "ScoredMemory",
    "Scratchpad",
    "ScratchpadMemoryEntry",
    "SearchFilters",
    "SearchMemoryRequest",
    "SearchMemoryResponse",
    "SearchMetadata",
    "SearchQuery",
    "SearchResults",
    "SecretFound",
    "SecretScanner",
    "SentenceTransformerEmbedder",
    "SessionContext",
    "SessionGraph",
    "SessionMemory",
    "SessionPermissions",
    "SessionType",
    "StorageBackend",
    "StorageClosed",
    "StorageCorrupt",
    "StorageError",
    "StorageFull",
    "StorageLocked",
    "StorageReadOnly",
    "StorageUnavailable",
    "StorageUntrusted",
    "SuccessResponse",
    "SystemConfig",
    "TaskMetadata",
    "TaskStatus",
    "TidyItem",
    "TidyReport",
    "Undone",
    "ValidationError",
    "VectorPoint",
    "VectorSearchQuery",
    "VectorStoreConfig",
    "WordLlamaEmbedder",
    "as_language_model",
    "conversation",
    "create_embedder",
    "database_path",
    "embedder_names",
    "estimate_tokens",
    "is_uuid4",
    "is_valid_agent_id",
    "load_system_config",
    "memory_arguments",
    "memory_root",
    "normalize_tags",
    "refuse_remote_store",
    "render_memories",
    "sanitize_agent_id",
    "validate_agent_id",
    "validate_embedding",
    "validate_memory_content",
    "validate_record_metadata",
    "validate_tags",
]
