"""Options that tables keep for other engines: Spark's properties, and those of ORC files and of lookups."""

from __future__ import annotations

from lockgate.framework.options.option import Effect, Option

# Apache ORC's and Paimon's, after `orc.`: one by one, so that a misspelt `orc.encrypt` passes for none.
_ORC = """
    base.delta.ratio block.padding block.padding.tolerance block.size bloom.filter.columns bloom.filter.fpp
    bloom.filter.write.version buffer.size.enforce column.encoding.direct compress.size compression.strategy
    compression.zstd.level compression.zstd.strategy compression.zstd.windowlog create.index
    dictionary.early.check dictionary.implementation dictionary.key.threshold dictionary.max.size.bytes
    encoding.strategy key.provider max.file.length memory.pool overwrite.output.file proleptic.gregorian
    proleptic.gregorian.default row.batch.size row.child.limit row.index.stride rows.between.memory.checks
    stripe.row.count stripe.size stripe.size.check.ratio write.format write.variable.length.blocks
    timestamp-ltz.legacy.type write.batch-size
"""
_SPARK = """
    path owner provider comment location external is_managed_location transient_lastDdlTime option.* spark.*
"""
_LOOKUPS = """
    async async-thread-number cache-rows cache-spill-compression cache.bloom.filter.enabled
    cache.bloom.filter.fpp continuous.discovery-interval dynamic-partition.refresh-interval max-retries
    partial-cache.* hash-load-factor merge-* remote-file.* local-file-type
"""
_KEYS = {
    "for writers of ORC files": [f"orc.{name}" for name in _ORC.split()],
    "a property that Spark gives its tables": _SPARK.split(),
    "for lookups that other engines make": [f"lookup.{name}" for name in _LOOKUPS.split()],
    "counts the replacements of the table; REPLACE TABLE alone sets it": ["lockgate.generation"],
}
CARRIED_OPTIONS = tuple(
    Option(key, str, "", doc, effect=Effect.CARRIED) for doc, keys in _KEYS.items() for key in keys
)
