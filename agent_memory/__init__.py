"""Long-term memory for AI agents: one SQLite file per agent, no server, no key, no network."""

from importlib import import_module as _import_module
from typing import Final as _Final

# The public names, each listed once, by the module that defines them. A module is imported when one
# of its names is first used: a command may take 200 ms to start, and document C's records, the
# sessions and the graph alone would cost 40 of them, though few callers need them.
# After a change run `python tests/test_public_names.py`, which writes the same names to
# __init__.pyi, for type checkers.
_NAMES: _Final = {
    "api.async_memory": "MemoryStorage",
    "api.graph": "MemoryGraph",
    "api.memory": "AgentMemory",
    "api.reader": "MemoryReader",
    "api.session": "SessionMemory",
    "api.session_graph": "SessionGraph",
    "api.system_config": "load_system_config memory_arguments refuse_remote_store store_root",
    "embeddings.async_generator": "EmbeddingGenerator",
    "embeddings.chain": "EmbedderChain",
    "embeddings.fastembed": "FastEmbedEmbedder",
    "embeddings.minilm": "MiniLMEmbedder",
    "embeddings.multilingual_e5": "MultilingualE5Embedder",
    "embeddings.openai": "OpenAIEmbedder",
    "embeddings.registry": "create_embedder embedder_names",
    "embeddings.sentence_transformers": "SentenceTransformerEmbedder",
    "embeddings.usage": "EmbeddingUsage",
    "embeddings.wordllama": "WordLlamaEmbedder",
    "errors": """
        AgentMemoryError AgentNotFound ConfigurationError DuplicateMemory EmbeddingError
        InvalidSession LimitReached MemoryNotFound MigrationError MissingAgentIdentity NewerSchema
        NotAMemoryFile PermissionDenied ProviderError RateLimitExceeded RejectedContent SecretFound
        StorageClosed StorageCorrupt StorageError StorageFull StorageLocked StorageReadOnly
        StorageUnavailable StorageUntrusted ValidationError
    """,
    "extraction.llm.anthropic": "AnthropicChat",
    "extraction.llm.openai": "OpenAIChat",
    "extraction.llm.registry": "as_language_model",
    "extraction.messages": "conversation",
    "models.agent": """
        AgentConfig AgentInfo AgentMetadata AgentStats AgentSummary CheckReport MigrationInfo
        Problem RebuildReport ServerInfo
    """,
    "models.config": "MemoryCaptureConfig MemoryContextConfig MemoryToolConfig",
    "models.conversation": """
        ContentBlock ExtractedFacts ExtractionMetadata ImageURL MemoryOperation MemoryOperations
        Message MessageRole Observation OperationEvent ProcessingMetadata
    """,
    "models.decision": "Review",
    "models.documents.record": """
        MemoryRecord MemoryRecordMetadata MemorySearchResponse RecordSearchMetadata SearchQuery
    """,
    "models.documents.record_rules": "is_uuid4 validate_embedding validate_record_metadata",
    "models.documents.responses": """
        AddMemoryMetadata AddMemoryRequest AddMemoryResponse AddedMemory ErrorCode ErrorDetail
        ErrorResponse ResponseMetadata SearchMemoryRequest SearchMemoryResponse SuccessResponse
    """,
    "models.documents.system_config": """
        AnthropicConfig EmbedderConfig GraphStoreConfig LLMConfig MonitoringConfig OpenAIConfig
        PerformanceConfig QdrantConfig SystemConfig VectorStoreConfig
    """,
    "models.documents.vector": "VectorPoint VectorSearchQuery",
    "models.duplicate": "Duplicate DuplicateGroup",
    "models.embedding": "MigrationPlan MigrationProgress",
    "models.embedding_traits": "EMBEDDING_MODELS",
    "models.enums": """
        EventName HistoryEvent Importance MatchType MemoryCategory MemoryKind MemoryOrder MemoryType
        ObservationType OnDuplicate OnSecret StorageBackend TaskStatus
    """,
    "models.event": "MemoryEvent",
    "models.excerpt": "MemoryExcerpt",
    "models.fields": """
        is_valid_agent_id normalize_tags sanitize_agent_id validate_agent_id validate_memory_content
        validate_tags
    """,
    "models.graph": """
        EdgeView Entity EntityMetadata EntityView GraphAction GraphChange GraphExcerpt GraphPath
        GraphReport GraphUpdate GraphUpdates GraphUpdatesMetadata Neighbour Neighbourhood
        Relationship RelationshipMetadata
    """,
    "models.limits": """
        BACKUP_SUFFIX DEFAULT_MEMORY_ROOT DEFAULT_MIGRATION_THRESHOLD DEFAULT_SEARCH_LIMIT
        DEFAULT_SIMILARITY_THRESHOLD MAX_MEMORY_CONTENT_LENGTH MAX_SCRATCHPAD_SIZE MAX_SEARCH_LIMIT
        MAX_TAGS_PER_MEMORY MAX_TAG_LENGTH METADATA_FILENAME MIGRATION_BATCH_SIZE QDRANT_CONFIG
        SCRATCHPAD_FILENAME VECTOR_DB_FILENAME
    """,
    "models.memory": "HistoryEntry Memory MemoryInput ScoredMemory",
    "models.memory_fields": "TaskMetadata",
    "models.protocols": "Embedder LanguageModel Reranker SecretScanner",
    "models.reports": """
        BackupFile ErasedCopy ErasureReceipt ExportReport ImportNote ImportReport MoveReport
        RestoreReport
    """,
    "models.retention": "RETENTION_PRESETS KindLimit RetentionPolicy TidyItem TidyReport Undone",
    "models.safety": "FoundSecrets Rejection",
    "models.scratchpad": "Promotion Scratchpad ScratchpadMemoryEntry",
    "models.search": """
        DateRange MemorySearchResult NearMiss ScoreExplanation SearchFilters SearchMetadata
        SearchResults
    """,
    "models.session": "SessionContext SessionPermissions SessionType",
    "models.statistics": """
        Breakdown Contradiction Gap Growth MemoryStatistics OldAnswer RecallStatistics
        RecalledMemory Recommendation Series
    """,
    "runtime.paths": "database_path memory_root",
    "services.rendering": "estimate_tokens render_memories",
    "text.normalize": "DuplicateGrade",
}
_MODULES: _Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _import_module("importlib.metadata").version("agent-memory")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
