"""Nodes of Spark's plans, and what each may do in a governed session.

A class that is not here may not run there, since nobody knows what it reads or changes.
"""

from __future__ import annotations

from lockgate.framework.access import Action


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Relations: Python decides about them with their columns.
RELATIONS = _words("""
    DataSourceV2Relation HiveTableRelation LogicalRelation StreamingRelation StreamingRelationV2
""")

# Leaves with rows of the statement or its session, and names that another node acts on.
_LEAVES = _words("""
    CTERelationRef CommandResult CurrentNamespace DummyExpressionHolder EmptyRelation ExternalRDD
    InMemoryRelation LocalRelation LogicalQueryStage LogicalRDD MemoryPlan NonGroupingAggregateReference
    OffsetHolder OneRowRelation Range ResolvedIdentifier ResolvedInlineTable ResolvedNamespace
    ResolvedNonPersistentFunc ResolvedPersistentFunc ResolvedPersistentView ResolvedProcedure ResolvedTable
    ResolvedTempView SQLTableFunction UnionLoopRef
""")

# Operators, which read what is below them alone.
_OPERATORS = _words("""
    Aggregate AppendColumns AppendColumnsWithObject ArrowEvalPython ArrowEvalPythonUDTF AsOfJoin
    AttachDistributedSequence BatchEvalPython BatchEvalPythonUDTF BinBy CTERelationDef CoGroup CollectMetrics
    DataFrameDropColumns Deduplicate DeduplicateWithinWatermark DeserializeToObject Distinct DomainJoin
    EventTimeWatermark Except Expand Filter FlatMapCoGroupsInArrow FlatMapCoGroupsInPandas
    FlatMapGroupsInArrow FlatMapGroupsInPandas FlatMapGroupsInPandasWithState FlatMapGroupsInR
    FlatMapGroupsInRWithArrow FlatMapGroupsWithState Generate GlobalLimit Intersect Join LateralJoin LimitAll
    LocalLimit MapElements MapGroups MapInArrow MapInPandas MapPartitions MapPartitionsInR
    MapPartitionsInRWithArrow MergeRows MultiResult NearestByJoin Offset OrderedJoin Pivot Project
    RebalancePartitions Repartition RepartitionByExpression ResolvedHint ReturnAnswer Sample
    SequentialStreamingUnion SerializeFromObject Sort SQLFunctionNode Subquery SubqueryAlias Tail
    TransformWithState TransformWithStateInPandas TransformWithStateInPySpark Transpose TypedFilter Union
    UnionLoop Unpivot
    UpdateEventTimeWatermarkColumn View Window WindowGroupLimit WithCTE WithWindowDefinition WriteFiles Zip
    WriteToDataSourceV2 WriteToMicroBatchDataSource WriteToMicroBatchDataSourceV1 WriteToStreamStatement
""")

# Statements that change nothing but their session, and queries within statements, which are analysed by
# themselves. A call of a procedure of ours asks for itself; that of another catalog is a `ForeignCall`.
_OF_SESSIONS = _words("""
    CacheTable CacheTableAsSelect Call ClearCacheCommand CloseCursor CompoundBody CreateTemporaryView
    CreateVariable DeclareCursor DescribeFunction DescribeFunctionCommand DescribeProcedureCommand
    DescribeQueryCommand DropTempViewCommand DropVariable ExplainCommand FetchCursor ListArchivesCommand
    ListFilesCommand ListJarsCommand NoopCommand OpenCursor RefreshFunction RefreshFunctionCommand
    RefreshResource RefreshTable RefreshTableCommand SetCatalogAndNamespace SetCatalogCommand
    SetNamespaceCommand SetPathCommand SetVariable ShowCatalogsCommand ShowCollationsCommand
    ShowCurrentNamespaceCommand ShowFunctions ShowFunctionsCommand ShowProceduresCommand
    StreamingExplainCommand UncacheTable
""")

# Nodes of plans that are not resolved, which Spark refuses itself and words better, and parts of scripts, of
# which each statement is analysed by itself.
_UNRESOLVED = _words("""
    ErrorCondition ExceptionHandler ExecuteImmediateQuery ForStatement GeneralParameterizedQuery
    IfElseStatement InsertIntoStatement IterateStatement LeaveStatement LoopStatement NameParameterizedQuery
    NamedStreamingRelation PipeOperator PlanWithUnresolvedIdentifier PosParameterizedQuery
    RelationTimeTravel RepeatStatement SearchedCaseStatement SimpleCaseStatement SingleStatement
    UnresolvedBinBy UnresolvedCatalogRelation UnresolvedCteRelationRef UnresolvedDataSource
    UnresolvedDeduplicate UnresolvedEventTimeWatermark UnresolvedExecuteImmediate UnresolvedFunctionName
    UnresolvedHaving UnresolvedHint UnresolvedIdentifier UnresolvedInlineTable UnresolvedInsert
    UnresolvedInsertTarget UnresolvedNamespace UnresolvedProcedure UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTable UnresolvedTableOrView
    UnresolvedTableValuedFunction UnresolvedTranspose UnresolvedView UnresolvedWith WhileStatement
""")

# The stream of a lookup join in SQL while Python plans the join, whose own plan is in the statement; a query
# and a relation whose statement is not resolved.
_OURS = _words("""
    io.lockgate.spark.rules.joins.StreamSide io.lockgate.spark.rules.writes.PendingQuery
    io.lockgate.spark.enforcement.HeldQuery io.lockgate.spark.enforcement.HeldRelation
""")

FREE = _LEAVES | _OPERATORS | _OF_SESSIONS | _UNRESOLVED | _OURS

SETTINGS = _words("SetCommand ResetCommand")

# Statements on tables and databases that have a name.
ACTIONS: dict[str, Action] = {
    name: action
    for action, names in {
        Action.SELECT: """
            DescribeColumn DescribeColumnCommand DescribeDatabaseCommand DescribeExtended DescribeNamespace
            DescribeRelation
            DescribeRelationJsonCommand DescribeTableCommand DescribeTablePartition ShowColumns
            ShowColumnsCommand ShowCreateTable ShowCreateTableAsSerdeCommand ShowCreateTableCommand
            ShowNamespaces ShowNamespacesCommand ShowPartitions ShowPartitionsCommand
            ShowPartitionsJsonCommand ShowTablePartition ShowTableProperties ShowTablePropertiesCommand
            ShowTables ShowTablesCommand ShowTablesExtended ShowTablesJsonCommand ShowViews ShowViewsCommand
        """,
        Action.INSERT: """
            AppendData InsertIntoDataSourceCommand InsertIntoHadoopFsRelationCommand InsertIntoHiveTable
            InsertOnlyMerge LoadData LoadDataCommand WriteToStream
        """,
        Action.UPDATE: "MergeIntoTable ReplaceData UpdateTable WriteDelta",
        Action.DELETE: """
            DeleteFromTable DeleteFromTableWithFilters InsertOverwrite OverwriteByExpression
            OverwritePartitionsDynamic TruncatePartition TruncateTable TruncateTableCommand
        """,
        Action.CREATE: """
            CreateDataSourceTableAsSelectCommand CreateDataSourceTableCommand CreateDatabaseCommand
            CreateHiveTableAsSelectCommand CreateNamespace CreateTable CreateTableAsSelect CreateTableCommand
            CreateTableLike CreateTableLikeCommand CreateView CreateViewCommand ReplaceTable
            ReplaceTableAsSelect SaveAsV1TableCommand
        """,
        Action.ALTER: """
            AddCheckConstraint AddColumns AddConstraint AddPartitions AlterColumns
            AlterDatabasePropertiesCommand AlterDatabaseSetLocationCommand AlterTableAddColumnsCommand
            AlterTableAddPartitionCommand AlterTableChangeColumnCommand
            AlterTableChangeColumnCommentsCommand AlterTableClusterBy AlterTableCollation
            AlterTableDropPartitionCommand AlterTableRenameCommand AlterTableRenamePartitionCommand
            AlterTableSerDePropertiesCommand AlterTableSetLocationCommand AlterTableSetPropertiesCommand
            AlterTableUnsetPropertiesCommand AlterViewAs AlterViewAsCommand AlterViewSchemaBinding
            AlterViewSchemaBindingCommand AnalyzeColumn AnalyzeColumnCommand AnalyzePartitionCommand
            AnalyzeTable AnalyzeTableCommand AnalyzeTables AnalyzeTablesCommand CommentOnNamespace
            CommentOnTable CreateIndex DropColumns DropConstraint DropIndex DropPartitions RecoverPartitions
            RenameColumn RenamePartitions RenameTable RepairTable RepairTableCommand ReplaceColumns
            SetNamespaceCollationCommand SetNamespaceLocation SetNamespaceProperties SetTableLocation
            SetTableProperties SetTableSerDeProperties SetViewProperties UnsetNamespacePropertiesCommand
            UnsetTableProperties UnsetViewProperties
        """,
        Action.DROP: "DropDatabaseCommand DropNamespace DropTable DropTableCommand DropView",
    }.items()
    for name in names.split()
}

# A MERGE without WHEN MATCHED, as Spark plans it since 4.2; the connector names older plans so, too.
INSERT_ONLY_MERGE = "InsertOnlyMerge"

# The start of a stream, and the sinks that keep nothing outside the session or leave rows to the user's code,
# whose statements are decided about by themselves.
STREAM = "WriteToStream"
FREE_SINKS = _words("ConsoleTable ForeachBatchSink ForeachWriterTable MemorySink NoopTable")

# Files that a stream deletes or moves once it has read them (the option `cleanSource`).
ACTIONS["CleanedSource"] = Action.INSERT

# A table or view that is all of a plan, as where Spark's catalog lists columns.
NAME_ALONE = "NameAlone"

# Before the name of a statement: its table before Spark looks for the columns or partitions that the
# statement names, since its error shows all that there are.
TARGET_OF = "TargetOf "

# Options that a read gives a table of another catalog. The free ones change at most when a stream reads
# which files of the table.
READ_OPTIONS = "ReadOptions"
FREE_OPTIONS = _words("""
    cleansource discardcachedinputratio filenameonly latestfirst maxbytespertrigger maxcachedfiles maxfileage
    maxfilespertrigger mergeschema sourcearchivedir
""")

# Statements that create the first table that they name with the columns of the others, which they describe.
COPYING = _words("CreateTableLike CreateTableLikeCommand")

# Statements that show values or partitions of stored rows, which a row filter or a mask does not reach.
SHOWING = _words("""
    DescribeColumn DescribeColumnCommand DescribeExtended DescribeRelationJsonCommand DescribeTablePartition
    ShowPartitions ShowPartitionsCommand ShowPartitionsJsonCommand ShowTablePartition
""")

# Sources of tables whose rows are in files below the table's location.
FILE_SOURCES = _words("avro binaryfile csv hive json orc parquet text xml")

# Statements that read, change or run more than they name, and streams without batches, which could not ask
# for rights again. Like unknown ones, they need a right to the statement itself.
BY_NAME = _words("""
    AddArchivesCommand AddFilesCommand AddJarsCommand AutoCdcInto CallMethodViaReflection
    CreateFlowCommand CreateFunction CreateFunctionCommand CreateMaterializedViewAsSelect
    CreateMetricView CreateMetricViewCommand CreateSQLFunctionCommand CreateStreamingTable
    CreateStreamingTableAsSelect CreateStreamingTableAutoCdc CreateTempViewUsing
    CreateUserDefinedFunction DataSourceV2ScanRelation DropFunction DropFunctionCommand
    ExternalCommandExecutor ForeignCall InsertIntoDataSourceDirCommand InsertIntoDir InsertIntoHiveDirCommand
    MapPartitionsExternalUDF MetricViewPlaceholder PythonWorkerLogs RelationChanges ResolvedMetricView
    SaveIntoDataSourceCommand ScanBuilderHolder ScriptTransformation StreamingDataSourceV2Relation
    StreamingDataSourceV2ScanRelation StreamingExecutionRelation TemporaryViewRelation
    V2ChangelogReference V2TableReference WriteToContinuousDataSource
""")
