"""Operations on streams that read tables."""
