"""Masks, which readers without the key get in place of encrypted values."""
