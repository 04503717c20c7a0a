"""The history of a table: tags, branches, changes, rollback, expiry and orphans."""
