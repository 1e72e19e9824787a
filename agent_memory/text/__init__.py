"""Pure functions over text: sentences, dates, secrets, normal forms."""
