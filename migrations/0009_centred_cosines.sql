-- Cosines are told from the middle of the store's vectors since this version, and what they are
-- worth was measured anew: the weight is that of a cosine of 0.5. A floor that is NULL is 0.4; one
-- that an embedder named itself was of cosines told from nowhere.
UPDATE embedding_models SET
  vector_weight = CASE WHEN model GLOB 'wordllama-l2-supercat-*' THEN 1.1
    WHEN vector_weight = 0.5 THEN 0.8 ELSE vector_weight END,
  similarity_floor = NULL;
