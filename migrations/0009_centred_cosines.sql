-- Cosines are told from the middle of the store's vectors since this version, and what they are
-- worth was measured anew: the weight is that of a cosine of 0.5.
UPDATE embedding_models SET
  vector_weight = CASE WHEN model GLOB 'wordllama-l2-supercat-*' THEN 1.1 ELSE 0.8 END,
  similarity_floor = 0.4;
