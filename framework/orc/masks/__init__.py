"""Masks: what readers without the key see in place of encrypted values."""
