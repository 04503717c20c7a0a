"""Apache Ranger's policies: read as Ranger writes them, decided as Ranger decides them."""
