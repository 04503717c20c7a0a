"""Writing of rows into data files, and what is checked before."""
