"""Operations on complete files: inspection, audit, encryption, decryption and rekeying."""
