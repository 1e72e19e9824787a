# Written by `python tests/test_public_names.py`; a test compares the two.
from agent_memory.api.async_memory import MemoryStorage as MemoryStorage
from agent_memory.api.graph import MemoryGraph as MemoryGraph
from agent_memory.api.memory import AgentMemory as AgentMemory
from agent_memory.api.reader import MemoryReader as MemoryReader
from agent_memory.api.session import SessionMemory as SessionMemory
from agent_memory.api.session_graph import SessionGraph as SessionGraph
from agent_memory.api.system_config import load_system_config as load_system_config
from agent_memory.api.system_config import memory_arguments as memory_arguments
from agent_memory.api.system_config import refuse_remote_store as refuse_remote_store
from agent_memory.api.system_config import store_root as store_root
from agent_memory.embeddings.async_generator import EmbeddingGenerator as EmbeddingGenerator
from agent_memory.embeddings.chain import EmbedderChain as EmbedderChain
from agent_memory.embeddings.fastembed import FastEmbedEmbedder as FastEmbedEmbedder
from agent_memory.embeddings.minilm import MiniLMEmbedder as MiniLMEmbedder
from agent_memory.embeddings.multilingual_e5 import MultilingualE5Embedder as MultilingualE5Embedder
from agent_memory.embeddings.openai import OpenAIEmbedder as OpenAIEmbedder
from agent_memory.embeddings.registry import create_embedder as create_embedder
from agent_memory.embeddings.registry import embedder_names as embedder_names
from agent_memory.embeddings.sentence_transformers import SentenceTransformerEmbedder as SentenceTransformerEmbedder
from agent_memory.embeddings.usage import EmbeddingUsage as EmbeddingUsage
from agent_memory.embeddings.wordllama import WordLlamaEmbedder as WordLlamaEmbedder
from agent_memory.errors import AgentMemoryError as AgentMemoryError
from agent_memory.errors import AgentNotFound as AgentNotFound
from agent_memory.errors import ConfigurationError as ConfigurationError
from agent_memory.errors import DuplicateMemory as DuplicateMemory
from agent_memory.errors import EmbeddingError as EmbeddingError
from agent_memory.errors import InvalidSession as InvalidSession
from agent_memory.errors import LimitReached as LimitReached
from agent_memory.errors import MemoryNotFound as MemoryNotFound
from agent_memory.errors import MigrationError as MigrationError
from agent_memory.errors import MissingAgentIdentity as MissingAgentIdentity
from agent_memory.errors import NewerSchema as NewerSchema
from agent_memory.errors import NotAMemoryFile as NotAMemoryFile
from agent_memory.errors import PermissionDenied as PermissionDenied
from agent_memory.errors import ProviderError as ProviderError
from agent_memory.errors import RateLimitExceeded as RateLimitExceeded
from agent_memory.errors import RejectedContent as RejectedContent
from agent_memory.errors import SecretFound as SecretFound
from agent_memory.errors import StorageClosed as StorageClosed
from agent_memory.errors import StorageCorrupt as StorageCorrupt
from agent_memory.errors import StorageError as StorageError
from agent_memory.errors import StorageFull as StorageFull
from agent_memory.errors import StorageLocked as StorageLocked
from agent_memory.errors import StorageReadOnly as StorageReadOnly
from agent_memory.errors import StorageUnavailable as StorageUnavailable
from agent_memory.errors import StorageUntrusted as StorageUntrusted
from agent_memory.errors import ValidationError as ValidationError
from agent_memory.extraction.llm.anthropic import AnthropicChat as AnthropicChat
from agent_memory.extraction.llm.openai import OpenAIChat as OpenAIChat
from agent_memory.extraction.llm.registry import as_language_model as as_language_model
from agent_memory.extraction.messages import conversation as conversation
from agent_memory.models.agent import AgentConfig as AgentConfig
from agent_memory.models.agent import AgentInfo as AgentInfo
from agent_memory.models.agent import AgentMetadata as AgentMetadata
from agent_memory.models.agent import AgentStats as AgentStats
from agent_memory.models.agent import AgentSummary as AgentSummary
from agent_memory.models.agent import CheckReport as CheckReport
from agent_memory.models.agent import MigrationInfo as MigrationInfo
from agent_memory.models.agent import Problem as Problem
from agent_memory.models.agent import RebuildReport as RebuildReport
from agent_memory.models.agent import ServerInfo as ServerInfo
from agent_memory.models.config import MemoryCaptureConfig as MemoryCaptureConfig
from agent_memory.models.config import MemoryContextConfig as MemoryContextConfig
from agent_memory.models.config import MemoryToolConfig as MemoryToolConfig
from agent_memory.models.conversation import ContentBlock as ContentBlock
from agent_memory.models.conversation import ExtractedFacts as ExtractedFacts
from agent_memory.models.conversation import ExtractionMetadata as ExtractionMetadata
from agent_memory.models.conversation import ImageURL as ImageURL
from agent_memory.models.conversation import MemoryOperation as MemoryOperation
from agent_memory.models.conversation import MemoryOperations as MemoryOperations
from agent_memory.models.conversation import Message as Message
from agent_memory.models.conversation import MessageRole as MessageRole
from agent_memory.models.conversation import Observation as Observation
from agent_memory.models.conversation import OperationEvent as OperationEvent
from agent_memory.models.conversation import ProcessingMetadata as ProcessingMetadata
from agent_memory.models.decision import Review as Review
from agent_memory.models.documents.record import MemoryRecord as MemoryRecord
from agent_memory.models.documents.record import MemoryRecordMetadata as MemoryRecordMetadata
from agent_memory.models.documents.record import MemorySearchResponse as MemorySearchResponse
from agent_memory.models.documents.record import RecordSearchMetadata as RecordSearchMetadata
from agent_memory.models.documents.record import SearchQuery as SearchQuery
from agent_memory.models.documents.record_rules import is_uuid4 as is_uuid4
from agent_memory.models.documents.record_rules import validate_embedding as validate_embedding
from agent_memory.models.documents.record_rules import validate_record_metadata as validate_record_metadata
from agent_memory.models.documents.responses import AddMemoryMetadata as AddMemoryMetadata
from agent_memory.models.documents.responses import AddMemoryRequest as AddMemoryRequest
from agent_memory.models.documents.responses import AddMemoryResponse as AddMemoryResponse
from agent_memory.models.documents.responses import AddedMemory as AddedMemory
from agent_memory.models.documents.responses import ErrorCode as ErrorCode
from agent_memory.models.documents.responses import ErrorDetail as ErrorDetail
from agent_memory.models.documents.responses import ErrorResponse as ErrorResponse
from agent_memory.models.documents.responses import ResponseMetadata as ResponseMetadata
from agent_memory.models.documents.responses import SearchMemoryRequest as SearchMemoryRequest
from agent_memory.models.documents.responses import SearchMemoryResponse as SearchMemoryResponse
from agent_memory.models.documents.responses import SuccessResponse as SuccessResponse
from agent_memory.models.documents.system_config import AnthropicConfig as AnthropicConfig
from agent_memory.models.documents.system_config import EmbedderConfig as EmbedderConfig
from agent_memory.models.documents.system_config import GraphStoreConfig as GraphStoreConfig
from agent_memory.models.documents.system_config import LLMConfig as LLMConfig
from agent_memory.models.documents.system_config import MonitoringConfig as MonitoringConfig
from agent_memory.models.documents.system_config import OpenAIConfig as OpenAIConfig
from agent_memory.models.documents.system_config import PerformanceConfig as PerformanceConfig
from agent_memory.models.documents.system_config import QdrantConfig as QdrantConfig
from agent_memory.models.documents.system_config import SystemConfig as SystemConfig
from agent_memory.models.documents.system_config import VectorStoreConfig as VectorStoreConfig
from agent_memory.models.documents.vector import VectorPoint as VectorPoint
from agent_memory.models.documents.vector import VectorSearchQuery as VectorSearchQuery
from agent_memory.models.duplicate import Duplicate as Duplicate
from agent_memory.models.duplicate import DuplicateGroup as DuplicateGroup
from agent_memory.models.embedding import MigrationPlan as MigrationPlan
from agent_memory.models.embedding import MigrationProgress as MigrationProgress
from agent_memory.models.embedding_traits import EMBEDDING_MODELS as EMBEDDING_MODELS
from agent_memory.models.enums import EventName as EventName
from agent_memory.models.enums import HistoryEvent as HistoryEvent
from agent_memory.models.enums import Importance as Importance
from agent_memory.models.enums import MatchType as MatchType
from agent_memory.models.enums import MemoryCategory as MemoryCategory
from agent_memory.models.enums import MemoryKind as MemoryKind
from agent_memory.models.enums import MemoryOrder as MemoryOrder
from agent_memory.models.enums import MemoryType as MemoryType
from agent_memory.models.enums import ObservationType as ObservationType
from agent_memory.models.enums import OnDuplicate as OnDuplicate
from agent_memory.models.enums import OnSecret as OnSecret
from agent_memory.models.enums import StorageBackend as StorageBackend
from agent_memory.models.enums import TaskStatus as TaskStatus
from agent_memory.models.event import MemoryEvent as MemoryEvent
from agent_memory.models.excerpt import MemoryExcerpt as MemoryExcerpt
from agent_memory.models.fields import is_valid_agent_id as is_valid_agent_id
from agent_memory.models.fields import normalize_tags as normalize_tags
from agent_memory.models.fields import sanitize_agent_id as sanitize_agent_id
from agent_memory.models.fields import validate_agent_id as validate_agent_id
from agent_memory.models.fields import validate_memory_content as validate_memory_content
from agent_memory.models.fields import validate_tags as validate_tags
from agent_memory.models.graph import EdgeView as EdgeView
from agent_memory.models.graph import Entity as Entity
from agent_memory.models.graph import EntityMetadata as EntityMetadata
from agent_memory.models.graph import EntityView as EntityView
from agent_memory.models.graph import GraphAction as GraphAction
from agent_memory.models.graph import GraphChange as GraphChange
from agent_memory.models.graph import GraphExcerpt as GraphExcerpt
from agent_memory.models.graph import GraphPath as GraphPath
from agent_memory.models.graph import GraphReport as GraphReport
from agent_memory.models.graph import GraphUpdate as GraphUpdate
from agent_memory.models.graph import GraphUpdates as GraphUpdates
from agent_memory.models.graph import GraphUpdatesMetadata as GraphUpdatesMetadata
from agent_memory.models.graph import Neighbour as Neighbour
from agent_memory.models.graph import Neighbourhood as Neighbourhood
from agent_memory.models.graph import Relationship as Relationship
from agent_memory.models.graph import RelationshipMetadata as RelationshipMetadata
from agent_memory.models.limits import BACKUP_SUFFIX as BACKUP_SUFFIX
from agent_memory.models.limits import DEFAULT_MEMORY_ROOT as DEFAULT_MEMORY_ROOT
from agent_memory.models.limits import DEFAULT_MIGRATION_THRESHOLD as DEFAULT_MIGRATION_THRESHOLD
from agent_memory.models.limits import DEFAULT_SEARCH_LIMIT as DEFAULT_SEARCH_LIMIT
from agent_memory.models.limits import DEFAULT_SIMILARITY_THRESHOLD as DEFAULT_SIMILARITY_THRESHOLD
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH as MAX_MEMORY_CONTENT_LENGTH
from agent_memory.models.limits import MAX_SCRATCHPAD_SIZE as MAX_SCRATCHPAD_SIZE
from agent_memory.models.limits import MAX_SEARCH_LIMIT as MAX_SEARCH_LIMIT
from agent_memory.models.limits import MAX_TAGS_PER_MEMORY as MAX_TAGS_PER_MEMORY
from agent_memory.models.limits import MAX_TAG_LENGTH as MAX_TAG_LENGTH
from agent_memory.models.limits import METADATA_FILENAME as METADATA_FILENAME
from agent_memory.models.limits import MIGRATION_BATCH_SIZE as MIGRATION_BATCH_SIZE
from agent_memory.models.limits import QDRANT_CONFIG as QDRANT_CONFIG
from agent_memory.models.limits import SCRATCHPAD_FILENAME as SCRATCHPAD_FILENAME
from agent_memory.models.limits import VECTOR_DB_FILENAME as VECTOR_DB_FILENAME
from agent_memory.models.memory import HistoryEntry as HistoryEntry
from agent_memory.models.memory import Memory as Memory
from agent_memory.models.memory import MemoryInput as MemoryInput
from agent_memory.models.memory import ScoredMemory as ScoredMemory
from agent_memory.models.memory_fields import TaskMetadata as TaskMetadata
from agent_memory.models.protocols import Embedder as Embedder
from agent_memory.models.protocols import LanguageModel as LanguageModel
from agent_memory.models.protocols import Reranker as Reranker
from agent_memory.models.protocols import SecretScanner as SecretScanner
from agent_memory.models.reports import BackupFile as BackupFile
from agent_memory.models.reports import ErasedCopy as ErasedCopy
from agent_memory.models.reports import ErasureReceipt as ErasureReceipt
from agent_memory.models.reports import ExportReport as ExportReport
from agent_memory.models.reports import ImportNote as ImportNote
from agent_memory.models.reports import ImportReport as ImportReport
from agent_memory.models.reports import MoveReport as MoveReport
from agent_memory.models.reports import RestoreReport as RestoreReport
from agent_memory.models.retention import RETENTION_PRESETS as RETENTION_PRESETS
from agent_memory.models.retention import KindLimit as KindLimit
from agent_memory.models.retention import RetentionPolicy as RetentionPolicy
from agent_memory.models.retention import TidyItem as TidyItem
from agent_memory.models.retention import TidyReport as TidyReport
from agent_memory.models.retention import Undone as Undone
from agent_memory.models.safety import FoundSecrets as FoundSecrets
from agent_memory.models.safety import Rejection as Rejection
from agent_memory.models.scratchpad import Promotion as Promotion
from agent_memory.models.scratchpad import Scratchpad as Scratchpad
from agent_memory.models.scratchpad import ScratchpadMemoryEntry as ScratchpadMemoryEntry
from agent_memory.models.search import DateRange as DateRange
from agent_memory.models.search import MemorySearchResult as MemorySearchResult
from agent_memory.models.search import NearMiss as NearMiss
from agent_memory.models.search import ScoreExplanation as ScoreExplanation
from agent_memory.models.search import SearchFilters as SearchFilters
from agent_memory.models.search import SearchMetadata as SearchMetadata
from agent_memory.models.search import SearchResults as SearchResults
from agent_memory.models.session import SessionContext as SessionContext
from agent_memory.models.session import SessionPermissions as SessionPermissions
from agent_memory.models.session import SessionType as SessionType
from agent_memory.models.statistics import Breakdown as Breakdown
from agent_memory.models.statistics import Contradiction as Contradiction
from agent_memory.models.statistics import Gap as Gap
from agent_memory.models.statistics import Growth as Growth
from agent_memory.models.statistics import MemoryStatistics as MemoryStatistics
from agent_memory.models.statistics import OldAnswer as OldAnswer
from agent_memory.models.statistics import RecallStatistics as RecallStatistics
from agent_memory.models.statistics import RecalledMemory as RecalledMemory
from agent_memory.models.statistics import Recommendation as Recommendation
from agent_memory.models.statistics import Series as Series
from agent_memory.runtime.paths import database_path as database_path
from agent_memory.runtime.paths import memory_root as memory_root
from agent_memory.services.rendering import estimate_tokens as estimate_tokens
from agent_memory.services.rendering import render_memories as render_memories
from agent_memory.text.normalize import DuplicateGrade as DuplicateGrade

__version__: str

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
    "AgentNotFound",
    "AgentStats",
    "AgentSummary",
    "AnthropicChat",
    "AnthropicConfig",
    "BackupFile",
    "Breakdown",
    "CheckReport",
    "ConfigurationError",
    "ContentBlock",
    "Contradiction",
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
    "Gap",
    "GraphAction",
    "GraphChange",
    "GraphExcerpt",
    "GraphPath",
    "GraphReport",
    "GraphStoreConfig",
    "GraphUpdate",
    "GraphUpdates",
    "GraphUpdatesMetadata",
    "Growth",
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
    "MemoryExcerpt",
    "MemoryGraph",
    "MemoryInput",
    "MemoryKind",
    "MemoryNotFound",
    "MemoryOperation",
    "MemoryOperations",
    "MemoryOrder",
    "MemoryReader",
    "MemoryRecord",
    "MemoryRecordMetadata",
    "MemorySearchResponse",
    "MemorySearchResult",
    "MemoryStatistics",
    "MemoryStorage",
    "MemoryToolConfig",
    "MemoryType",
    "Message",
    "MessageRole",
    "MigrationError",
    "MigrationInfo",
    "MigrationPlan",
    "MigrationProgress",
    "MiniLMEmbedder",
    "MissingAgentIdentity",
    "MonitoringConfig",
    "MoveReport",
    "MultilingualE5Embedder",
    "NearMiss",
    "Neighbour",
    "Neighbourhood",
    "NewerSchema",
    "NotAMemoryFile",
    "Observation",
    "ObservationType",
    "OldAnswer",
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
    "RecallStatistics",
    "RecalledMemory",
    "Recommendation",
    "RecordSearchMetadata",
    "RejectedContent",
    "Rejection",
    "Relationship",
    "RelationshipMetadata",
    "Reranker",
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
    "Series",
    "ServerInfo",
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
    "store_root",
    "validate_agent_id",
    "validate_embedding",
    "validate_memory_content",
    "validate_record_metadata",
    "validate_tags",
]
