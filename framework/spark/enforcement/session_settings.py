"""Settings of a session of Spark: what each may do to row filters, masks and stored values.

Spark analyses row filters and masks under the server's settings. A setting of a reader's session can still
count where Spark optimizes and computes them, and where it reads files. Sources: `SQLConf` and the readers of
Spark 4.1 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["fenced", "free", "meaning", "zone"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in text.split())


# Settings that define catalogs, keys, users, rules and programs, and those that bring back a Spark of old,
# whose statements are others.
_FENCED = (
    *_words("""
        dfs. fs. hadoop. parquet.crypto. parquet.encryption. spark.hadoop. spark.lockgate.
        spark.redaction.
    """),
    *(
        f"spark.sql.{name}"
        for name in _words("""
            adaptive.customCostEvaluatorClass adaptive.optimizer.excludedRules
            analyzer.singlePassResolver. catalog.
            execution.pyspark.python extendedExplainProviders extensions legacy. maven.
            optimizer.excludedRules parquet.output.committer.class redaction. sources.commitProtocolClass
            sources.outputCommitterClass streaming.commitProtocolClass streaming.stateStore.providerClass
            variable.substitute
        """)
    ),
)

# Where files hold times as text, or a folder's name does, they are times of the session's zone. Row filters
# and masks have the server's zone.
_ZONE = "spark.sql.session.timezone"

# Settings by which what a row filter or a mask gives, or a stored value, would be another. So it is with each
# setting that is not known.
_MEANING = (
    *_words("hive. io. mapred. mapreduce. orc. parquet. avro. spark."),
    *(
        f"spark.sql.{name}"
        for name in _words("""
            ansi.enabled artifact. avro. binByRelationOperator.enabled caseSensitive
            charAsVarchar chunkBase64String. collation. columnNameOfCorruptRecord csv. dataSource.
            datetime.java8API. decimalOperations. defaultColumn. dropTableOnView. experimental.
            execution.datasources. expressionTreeChangeLog. files. function. generatedColumn. geospatial.
            hive. icu. json. jsonGenerator. lightweightPlanChangeValidation listagg. mapKeyDedupPolicy
            mapZipWithUsesJavaCollections mergeNestedTypeCoercion. optimizer. orc. parquet. planChangeLog.
            planChangeValidation preserveCharVarcharTypeInfo protobuf. python. readSideCharPadding
            runCollationTypeCastsBeforeAliasAssignment. sources. timeTravel timestampNanosTypes.
            timestampType timeType. transposeMaxValues types.framework. udt. useCommonExprIdForAlias
            variant. xml.
        """)
    ),
)

# Settings that say how Spark computes, and what the user's own statements mean and write; and the folder that
# Spark itself enters as it starts, and that no session can change. A Thrift server enters some of its own.
_FREE = (
    *_words("""
        hive.exec.dynamic.partition hive.exec.max.dynamic.partitions hive.server2. spark.connect. spark.job
        spark.scheduler. spark.sql.hive.thriftServer. spark.sql.thriftserver.
    """),
    *(
        f"spark.sql.{name}"
        for name in _words("""
            adaptive. addPartitionInBatch. allowNamedFunctionArguments alwaysInlineCommonExpr analyzer.
            binaryOutputStyle
            ansi.doubleQuotedIdentifiers ansi.enforceReservedKeywords ansi.relationPrecedence
            assumeAnsiFalseIfNotPersisted. autoBroadcastJoinThreshold avro.compression. avro.deflate.
            avro.filterPushdown. avro.xz. avro.zstandard. broadcastTimeout bucketing.
            cartesianProductExec. cbo. classic.shuffleDependency. cli. codegen. columnVector.offheap.
            connect. constraintPropagation. crossJoin. csv.filterPushdown. csv.parser.columnPruning.
            csv.parser.inputBufferSize cteRecursion cteRelationDefMaxRows. dataFrameQueryContext.
            dataframeCache. debug. defaultCacheStorageLevel defaultCatalog defaultPath defaultSizeInBytes
            dropDuplicates. enforceTypeCoercionBeforeUnionDeduplication. error.messageFormat
            exchange.reuse execution. fileSource.insert. files.maxPartition files.maxRecordsPerFile
            files.minPartitionNum files.openCostInBytes functionResolution. groupBy hive.convertCTAS
            hive.metastorePartitionPruning hive.version inMemoryColumnarStorage. inMemoryTableScanStatistics.
            insertIntoReplace insertNestedTypeCoercion. join. json.filterPushdown. lateralColumnAlias.
            lazySetOperatorOutput. leafNodeDefaultParallelism limit. maxBroadcastTableSize
            maxConcurrentOutputFileWriters maxMetadataStringLength maxPlanStringLength
            maxSinglePartitionBytes nameResolutionLog. objectHashAggregate. operatorPipeSyntaxEnabled
            optimizeNullAwareAntiJoin optimizer.avoid optimizer.dynamicPartitionPruning. optimizer.inSet
            optimizer.maxIterations optimizer.nestedPredicatePushdown. optimizer.nestedSchemaPruning.
            optimizer.disableHints optimizer.plannedWrite. optimizer.runtime. optimizer.runtimeFilter.
            optimizer.singleTaskExecution. optimizer.windowGroupLimitThreshold orc.aggregatePushdown
            orc.columnarReaderBatchSize orc.columnarWriterBatchSize orc.compression.
            orc.enableVectorizedReader orc.filterPushdown orderBy orderingAwareLimitOffset
            parquet.aggregatePushdown parquet.columnarReaderBatchSize parquet.compression.
            parquet.enableVectorizedReader parquet.filterPushdown parquet.pushdown.inFilterThreshold
            parquet.respectSummaryFiles parser. path. pipelines. pivotMaxValues planner.
            prioritizeOrdinalResolutionInSort. pyspark. python.filterPushdown. repl.
            requireAllClusterKeysFor resultQueryStage. retainGroupColumns runSQLOnFiles
            scriptTransformation. scripting. selfJoinAutoResolveAmbiguity session.localRelation
            sessionWindow. shuffle shuffledHashJoinFactor sort. sortMergeJoinExec. sources.binaryFile.
            sources.bucketing. sources.default sources.fileCompressionFactor sources.ignoreDataLocality
            sources.parallelPartitionDiscovery. sources.partitionOverwriteMode sources.v2.bucketing.
            stableDerivedColumnAlias. stackTracesInDataFrameContext statistics. storeAssignmentPolicy
            streaming. subexpressionElimination. truncateTable. tvf. ui. unionOutputPartitioning view.
            warehouse.dir window
        """)
    ),
)

# Settings that other engines enter in every session that uses them, with the values that do no harm: Delta's
# extension for its mapping of columns (without ids in a schema Parquet is read by names as before; with ids,
# files that lack them are an error), and Iceberg's source for tables that are read by their paths. Sources:
# Delta's `DeltaSparkSessionExtension`, Iceberg's `IcebergSource`.
_ENTERED = {
    "spark.sql.parquet.fieldid.read.enabled": "true",
    "spark.sql.catalog.default_cache_iceberg": "org.apache.iceberg.spark.SparkCachedTableCatalog",
    "spark.sql.catalog.default_iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.default_iceberg.cache-enabled": "false",
    "spark.sql.catalog.default_iceberg.default-namespace": "default",
    "spark.sql.catalog.default_iceberg.type": "hive",
    "spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
}

# The JVM itself checks who may name a user; only the application can set the other.
CHECKED_ELSEWHERE = frozenset({"spark.lockgate.user", "spark.lockgate.acts-for-others"})


def kind_of(setting: str) -> Kind:
    """Say what changing a setting in a session may do.

    `fenced`: only the server sets it. `meaning`: row filters, masks or stored values could be others. `zone`:
    times that files hold as text are others. `free`: none of these. A name without a dot is a variable of the
    user, and free; any other name that is not known has the kind `meaning`.
    """
    name = setting.strip().lower()
    if name.startswith(_FENCED):
        return "fenced"
    if name == _ZONE:
        return "zone"
    if "." not in name:
        return "free"
    longest = _longest(name, _FREE)
    return "free" if longest > _longest(name, _MEANING) else "meaning"


def is_entered(setting: str, value: Callable[[str], str]) -> bool:
    """Tell whether another engine enters a setting in its sessions, with the value that `value` gives."""
    wanted = _ENTERED.get(setting.strip().lower())
    return wanted is not None and value(setting) == wanted


def is_judged(setting: str) -> bool:
    """Say whether a setting of Spark SQL has a kind by its own name or family, not for being unknown."""
    name = setting.strip().lower()
    families = tuple(family for family in _MEANING if family != "spark.")
    return name == _ZONE or name.startswith((*_FENCED, *_FREE, *families))


def is_fenced(setting: str) -> bool:
    """Say whether a session may not set a conf by a statement."""
    return kind_of(setting) == "fenced"


def _longest(name: str, families: tuple[str, ...]) -> int:
    return max((len(family) for family in families if name.startswith(family)), default=0)
