"""Language models: clients, prompts, answers, settings."""
