"""From conversations to facts, and from facts to decisions: by a language model, or by rules.

Nothing here opens a store. ``messages.conversation`` reads a chat, ``facts.extract`` draws the
facts from it, ``decisions.decide`` compares each with the memories that are related to it, and says
what is to be done; ``pipeline`` does all three, and ``add`` is the verb.
``llm.registry.as_language_model`` makes the model that both may use.
"""
