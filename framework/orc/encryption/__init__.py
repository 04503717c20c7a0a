"""Column encryption of the ORC standard: options, keys of files and stripes, ciphers."""
