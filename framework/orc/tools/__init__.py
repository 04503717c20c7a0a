"""Whole files inspected, audited, encrypted, decrypted and put under other keys."""
