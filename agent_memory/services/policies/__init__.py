"""Policies: what is admitted, masked, rejected and archived."""
