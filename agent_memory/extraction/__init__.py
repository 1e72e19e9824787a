"""From conversations to facts, and from facts to decisions: by a language model, or by rules.

Nothing here opens a store. ``messages.conversation`` reads a chat, ``facts.extract`` extracts its
facts, ``decisions.decide`` compares each with the memories related to it and decides what to do;
``pipeline`` does all three, and ``add`` is the verb. ``llm.registry.as_language_model`` creates the
model that both may use.
"""
