"""Operations: one module per family, one row per operation."""
