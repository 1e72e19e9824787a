"""From a backup."""
