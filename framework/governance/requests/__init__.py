"""Requests for access, and the grants that answer them: where requests are kept, and how policies change."""
