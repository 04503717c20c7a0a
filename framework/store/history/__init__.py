"""The history of a table: tags, branches, changes, rollback, expiry and what it leaves behind."""
