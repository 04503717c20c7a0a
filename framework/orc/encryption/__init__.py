"""Column encryption as the ORC standard has it: options, keys of files and stripes, ciphers."""
